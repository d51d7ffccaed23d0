! The examples of docs/fortran.md for plans, loops and moves that change the array, on 4 ranks.
program loop
    use mpi
    use reshard
    implicit none
    type(reshard_mesh) :: mesh
    type(reshard_layout) :: source, target, wide, padded
    type(reshard_error) :: error
    type(reshard_backend) :: backend
    type(reshard_plan) :: plan
    type(reshard_executor) :: executor
    type(reshard_verdict) :: verdict
    real, allocatable :: in(:, :, :), out(:, :, :), b(:, :)
    double precision, allocatable :: a(:, :)
    integer :: rank, round, ierror

    call MPI_Init(ierror)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
    call reshard_mesh_parse('x=2,y=2', mesh, error)
    call reshard_layout_parse(mesh, 'f32[12@x,10@y,8]', source, error)
    call reshard_layout_parse(mesh, 'f32[12,10@x,8@y]', target, error)
    allocate (in(8, 5, 6), out(4, 5, 12))
    ! [README fortran_loop]
    call reshard_backend_make(MPI_COMM_WORLD, backend, error)
    call reshard_plan_make(source, target, plan, error, backend=backend)
    call reshard_plan_verdict(plan, verdict, error)
    if (rank == 0) print '(a, i0, a)', 'a rank receives ', verdict%received_bytes_max_device, ' bytes'
    call reshard_executor_make(backend, plan, executor, error)
    if (error%code /= reshard_ok) stop 1
    do round = 1, 10
        in = round
        call reshard_run(executor, in, out, error)
        if (error%code /= reshard_ok) print *, error%describe
    end do
    ! [README fortran_loop end]
    if (any(out /= 10)) stop 2
    if (rank == 0) print '(a)', 'last round: 10'
    ! [README fortran_changes]
    ! a(10, 12) of double precision becomes b(12, 16) of real: cast, transposed, and padded with -1.
    call reshard_layout_parse(mesh, 'f64[12@x,10]', wide, error)
    call reshard_layout_parse(mesh, 'f32[16@y,12]', padded, error)
    allocate (a(10, 6), b(12, 8))
    a = 1d0/3
    call reshard_redistribute(MPI_COMM_WORLD, wide, padded, a, b, error, permute=[2, 1], fill=-1.0)
    ! [README fortran_changes end]
    if (error%code /= reshard_ok) print *, error%describe
    if (rank == 0) print '(a, i0, a)', 'padded: ', count(b == real(1d0/3)), ' of 96 right'
    if (rank == 1) then
        if (any(b(:, 1:2) /= real(1d0/3)) .or. any(b(:, 3:) /= -1)) stop 3
    end if
    call reshard_release(wide)
    call reshard_release(padded)
    call reshard_release(executor)
    call reshard_release(plan)
    call reshard_release(backend)
    call reshard_release(source)
    call reshard_release(target)
    call reshard_release(mesh)
    call MPI_Finalize(ierror)
end program
