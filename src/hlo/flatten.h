/* Modules without tuples, tokens and futures. A value of such a type becomes the values of arrays that it is made of, a token none:

     %t = after_all
     %u = tuple %a, %b                                 %c, %d = while %a, %b
     %v = while %u, %t : tuple<..>, token       ->     return %d
     %w = get_tuple_element %v#0[1]
     return %w

   Tokens only say what comes after what: a program keeps the order that the text has. Functions take and return arrays alone, and
   arguments are named "x.0", "x.1", ... Time and memory grow with the module and the arrays that its tuples hold. */
#ifndef AX_HLO_FLATTEN_H
#define AX_HLO_FLATTEN_H

#include "hlo/module.h"

#define AX_HLO_IS_TOKEN "is_token"

/* entry_tokens: a token that @main takes or returns is an array bool[0] there, as runs of JAX pass it from one to the next. In the function
   such an argument is a token as others, and the array that is returned is made anew: a constant with the attribute AX_HLO_IS_TOKEN.
   AX_INVALID_ARGUMENT: a tuple that is made of other values than its type says; an element that there is not. AX_ABSENT: tuples
   nested deeply, or of a great many elements. */
AX_MUST_USE ax_status ax_hlo_flatten(ax_hlo_module *module, bool entry_tokens);

#endif
