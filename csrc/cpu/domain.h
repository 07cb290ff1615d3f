/* domain: IN_DOMAIN(domain)(text) expands to text if the domain of a row of ops.def contains KIND_OF_DTYPE, the kind of
 * a dtype (F, I or B), and otherwise to nothing. */
#ifndef NR_DOMAIN_H
#define NR_DOMAIN_H

#include "cpu.h"

#define IN_DOMAIN(domain) NR_JOIN2(NR_JOIN2(NR_IN, domain), KIND_OF_DTYPE)
#define NR_IN_C_F(text)
#define NR_IN_C_I(text)
#define NR_IN_C_B(text)
#define NR_IN_F_F(text) text
#define NR_IN_F_I(text)
#define NR_IN_F_B(text)
#define NR_IN_I_F(text)
#define NR_IN_I_I(text) text
#define NR_IN_I_B(text)
#define NR_IN_IF_F(text) text
#define NR_IN_IF_I(text) text
#define NR_IN_IF_B(text)
#define NR_IN_BI_F(text)
#define NR_IN_BI_I(text) text
#define NR_IN_BI_B(text) text
#define NR_IN_BIF_F(text) text
#define NR_IN_BIF_I(text) text
#define NR_IN_BIF_B(text) text

#endif
