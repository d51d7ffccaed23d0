! A user's lines in Fortran.
program main
    use reshard
    implicit none
    type(reshard_mesh) :: mesh
    type(reshard_layout) :: layout
    type(reshard_error) :: error
    call reshard_mesh_parse('x=2', mesh, error)
    call reshard_layout_parse(mesh, 'f64[5@x,4]', layout, error)
    if (error%code /= reshard_ok .or. reshard_tile_count(layout, 1) /= 8) stop 1
    print '(a)', reshard_layout_text(layout)
end program
