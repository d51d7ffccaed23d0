! The first example of docs/fortran.md: rows to columns under MPI, on 4 ranks.
! [README fortran_first]
program first
    use mpi
    use reshard
    implicit none
    type(reshard_mesh) :: mesh
    type(reshard_layout) :: by_rows, by_columns
    type(reshard_error) :: error
    double precision, allocatable :: rows(:, :), columns(:, :)
    integer :: rank, ierror

    call MPI_Init(ierror)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
    call reshard_mesh_parse('ranks=4', mesh, error)
    call reshard_layout_parse(mesh, 'f64[840,840@ranks]', by_rows, error)     ! a(840/4, 840): slowest dimension first
    call reshard_layout_parse(mesh, 'f64[840@ranks,840]', by_columns, error)  ! a(840, 840/4)
    if (error%code /= reshard_ok) stop 1
    allocate (rows(210, 840), columns(840, 210))
    rows = rank
    call reshard_redistribute(MPI_COMM_WORLD, by_rows, by_columns, rows, columns, error)
    if (error%code /= reshard_ok) print *, error%describe
    print '(a, f4.1, a, f4.1)', 'moved: ', columns(1, 1), ' to ', columns(840, 210)
    call reshard_release(by_rows)
    call reshard_release(by_columns)
    call reshard_release(mesh)
    call MPI_Finalize(ierror)
end program
! [README fortran_first end]
