struct ax_box;
