! The halo example of docs/fortran.md: ten sweeps of a periodic average on 4 ranks, which keeps the sum.
program halos
    use mpi
    use reshard
    use, intrinsic :: iso_fortran_env, only: int64
    implicit none
    type(reshard_mesh) :: mesh
    type(reshard_error) :: error
    type(reshard_backend) :: backend
    type(reshard_halo_layout) :: layout
    type(reshard_halo) :: halo
    integer(int64), allocatable :: extents(:), first(:), last(:)
    double precision, allocatable :: u(:, :), new(:, :)
    double precision :: total, all_total
    integer :: rank, sweep, m, n, ierror

    call MPI_Init(ierror)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
    call reshard_mesh_parse('x=4', mesh, error)
    call reshard_backend_make(MPI_COMM_WORLD, backend, error)
    ! [README fortran_halo]
    call reshard_halo_layout_parse(mesh, 'f64[80@x~1%,60~1%]', layout, error)  ! blocks of 60 x 20
    call reshard_halo_make(backend, layout, halo, error)
    if (error%code /= reshard_ok) stop 1
    call reshard_halo_array(layout, rank, 2, extents, first, last, error)      ! slowest dimension first
    m = int(extents(2))
    n = int(extents(1))
    allocate (u(m, n), new(m, n))
    u(first(2):last(2), first(1):last(1)) = rank                               ! the block
    do sweep = 1, 10
        call reshard_halo_fill(halo, u, error)
        if (error%code /= reshard_ok) print *, error%describe
        new(2:m - 1, 2:n - 1) = (u(1:m - 2, 2:n - 1) + u(3:m, 2:n - 1) + u(2:m - 1, 1:n - 2) + u(2:m - 1, 3:n))/4
        u = new
    end do
    ! [README fortran_halo end]
    total = sum(u(first(2):last(2), first(1):last(1)))  ! exact: each value is an integer over 2**20
    call MPI_Allreduce(total, all_total, 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierror)
    if (rank == 0) print '(a, f6.1)', 'the sum stays ', all_total
    call reshard_release(halo)
    call reshard_release(layout)
    call reshard_release(backend)
    call reshard_release(mesh)
    call MPI_Finalize(ierror)
end program
