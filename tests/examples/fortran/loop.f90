! The examples of docs/fortran.md for plans and loops, on 4 ranks.
program loop
    use mpi
    use reshard
    implicit none
    type(reshard_mesh) :: mesh
    type(reshard_layout) :: source, target
    type(reshard_error) :: error
    type(reshard_backend) :: backend
    type(reshard_plan) :: plan
    type(reshard_executor) :: executor
    type(reshard_verdict) :: verdict
    real, allocatable :: in(:, :, :), out(:, :, :)
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
    call reshard_release(executor)
    call reshard_release(plan)
    call reshard_release(backend)
    call reshard_release(source)
    call reshard_release(target)
    call reshard_release(mesh)
    call MPI_Finalize(ierror)
end program
