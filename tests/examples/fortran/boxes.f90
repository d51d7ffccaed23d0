! The example of boxes in docs/fortran.md: a coupler between bands of rows and the poles in columns.
program boxes_example
    use mpi
    use reshard
    use, intrinsic :: iso_fortran_env, only: int64
    implicit none
    type(reshard_error) :: error
    type(reshard_backend) :: backend
    type(reshard_boxes) :: boxes
    integer(int64), allocatable :: have(:, :, :), want(:, :, :)
    double precision, allocatable :: ocean(:, :), ice(:, :, :)
    integer :: rank, step, ierror
    logical :: right, all_right

    call MPI_Init(ierror)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
    call reshard_backend_make(MPI_COMM_WORLD, backend, error)
    ! [README fortran_boxes]
    ! Ranks 0 and 1 run the ocean and own 60 rows each. Ranks 2 and 3 run the ice and want 120 columns of both poles.
    allocate (have(2, 2, merge(1, 0, rank < 2)), want(2, 2, merge(2, 0, rank >= 2)))
    if (rank < 2) have(:, :, 1) = reshape([60*rank + 1, 60*rank + 60, 1, 240], [2, 2])  ! first and last index, from 1
    if (rank >= 2) then
        want(:, :, 1) = reshape([1, 30, 120*rank - 239, 120*rank - 120], [2, 2])
        want(:, :, 2) = reshape([91, 120, 120*rank - 239, 120*rank - 120], [2, 2])
    end if
    call reshard_boxes_make(backend, 'f64', [120_int64, 240_int64], have, want, boxes, error)
    if (error%code /= reshard_ok) stop 1
    allocate (ocean(240, merge(60, 0, rank < 2)), ice(120, 30, size(want, 3)))          ! the boxes, one after another
    do step = 1, 10
        ocean = step + rank
        call reshard_boxes_run(boxes, ocean, ice, error)
        if (error%code /= reshard_ok) print *, error%describe
    end do
    ! [README fortran_boxes end]
    right = .true.
    if (rank >= 2) right = all(ice(:, :, 1) == 10) .and. all(ice(:, :, 2) == 11)
    call MPI_Allreduce(right, all_right, 1, MPI_LOGICAL, MPI_LAND, MPI_COMM_WORLD, ierror)
    if (rank == 2) print '(2a, i0, a)', merge('right', 'wrong', all_right), ': ', reshard_boxes_received_bytes(boxes), &
        ' bytes'
    call reshard_release(boxes)
    call reshard_release(backend)
    call MPI_Finalize(ierror)
end program
