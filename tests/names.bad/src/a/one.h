typedef struct ax_box { int x; } ax_box;
/* struct ax_said { */
enum ax_colour { RED };
