/* each_line: the TEMPLATE of each_dtype.h that is one line: LINE. */
LINE
