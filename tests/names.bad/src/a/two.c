struct ax_box /* another */ {
  int y;
};
enum ax_colour { BLUE };
struct ax_said { int z; };
