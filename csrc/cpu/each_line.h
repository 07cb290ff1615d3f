/* each_line: a TEMPLATE of each_dtype.h that consists of the macro LINE, to repeat one line for each dtype. */
LINE
