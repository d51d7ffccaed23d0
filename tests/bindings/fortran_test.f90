! The Fortran module on 4 ranks: every element of moves of each type and rank, texts, plans, rows and errors.
program fortran_test
    use mpi
    use reshard
    use, intrinsic :: iso_fortran_env, only: int32, int64, real32, real64
    implicit none
    type(reshard_mesh) :: mesh
    type(reshard_error) :: error
    integer :: rank, failures, all_failures, ierror

    failures = 0
    call MPI_Init(ierror)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
    call reshard_mesh_parse('x=4', mesh, error)
    call expect(error%code == reshard_ok, 'a mesh')
    call matrices()
    call transposed_cast_and_padded()
    call scalars_of_each_type()
    call plans()
    call registered()
    call halos()
    call boxes_and_rebuilds()
    call errors()
    call reshard_clear(MPI_COMM_WORLD, error)
    call expect(error%code == reshard_ok, 'clear')
    call reshard_release(mesh)
    call reshard_release(mesh)
    call MPI_Allreduce(failures, all_failures, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierror)
    call MPI_Finalize(ierror)
    if (rank == 0) print '(i0, a)', all_failures, ' failed'
    if (all_failures /= 0) stop 1

contains

    subroutine expect(holds, what)
        logical, intent(in) :: holds
        character(*), intent(in) :: what
        if (holds) return
        failures = failures + 1
        print '(a, i0, 4a)', 'rank ', rank, ': not so: ', what
        if (allocated(error%describe)) print '(a)', error%describe
    end subroutine

    function layout(text) result(made)
        character(*), intent(in) :: text
        type(reshard_layout) :: made
        call reshard_layout_parse(mesh, text, made, error)
        call expect(error%code == reshard_ok, text)
        call expect(reshard_layout_text(made) == text, 'the text of '//text)
    end function

    ! The global matrix a(37, 11), with a(i, j) = 100 i + j, in uneven rows and columns.
    subroutine matrices()
        type(reshard_layout) :: by_rows, by_columns
        real(real64), allocatable :: rows(:, :), columns(:, :)
        integer(int64), allocatable :: extents(:), first(:)
        integer :: i, j, again, wrong
        by_rows = layout('f64[11,37@x]')
        by_columns = layout('f64[11@x,37]')
        call reshard_tile(by_rows, rank, extents, first, error)
        allocate (rows(extents(2), extents(1)))
        do j = 1, size(rows, 2)
            do i = 1, size(rows, 1)
                rows(i, j) = 100*(first(2) + i) + first(1) + j
            end do
        end do
        call reshard_tile(by_columns, rank, extents, first, error)
        call expect(reshard_tile_count(by_columns, rank) == extents(1)*extents(2), 'the count of a tile')
        allocate (columns(extents(2), extents(1)))
        do again = 1, 2
            columns = 0
            call reshard_redistribute(MPI_COMM_WORLD, by_rows, by_columns, rows, columns, error)
            call expect(error%code == reshard_ok, 'redistribute')
            wrong = 0
            do j = 1, size(columns, 2)
                do i = 1, size(columns, 1)
                    if (columns(i, j) /= 100*(first(2) + i) + first(1) + j) wrong = wrong + 1
                end do
            end do
            call expect(wrong == 0, 'every element')
        end do
        ! A type that is not the layout's, on all ranks, and an array that is too small on one rank.
        block
            real(real32) :: single(1)
            call reshard_redistribute(MPI_COMM_WORLD, by_rows, by_columns, single, single, error)
            call expect(error%code == reshard_mismatch, 'another type')
            call expect(index(error%message, 'f32') > 0 .and. index(error%message, 'f64') > 0, 'both types')
        end block
        if (rank == 1) deallocate (rows)
        if (rank == 1) allocate (rows(1, 1))
        call reshard_redistribute(MPI_COMM_WORLD, by_rows, by_columns, rows, columns, error)
        call expect(error%code == reshard_mismatch, 'too small an array')
        call reshard_release(by_rows)
        call reshard_release(by_columns)
    end subroutine

    ! The matrix a(37, 11) of real64, with a(i, j) = 100 i + j + 1/3, becomes b(16, 37) of real32. Rows 12 to 16 of b are
    ! padding. A second move strips and widens it.
    subroutine transposed_cast_and_padded()
        type(reshard_layout) :: wide, narrow
        real(real64), allocatable :: rows(:, :), back(:, :)
        real(real32), allocatable :: columns(:, :)
        integer(int64), allocatable :: extents(:), first(:)
        real(real32) :: wanted
        integer :: i, j, again, wrong
        wide = layout('f64[11,37@x]')
        narrow = layout('f32[37,16@x]')
        call reshard_tile(wide, rank, extents, first, error)
        allocate (rows(extents(2), extents(1)), back(extents(2), extents(1)))
        do j = 1, size(rows, 2)
            do i = 1, size(rows, 1)
                rows(i, j) = 100*(first(2) + i) + first(1) + j + 1d0/3
            end do
        end do
        call reshard_tile(narrow, rank, extents, first, error)
        allocate (columns(extents(2), extents(1)))
        do again = 1, 2
            columns = 0
            call reshard_redistribute(MPI_COMM_WORLD, wide, narrow, rows, columns, error, permute=[2, 1], fill=-7.5)
            call expect(error%code == reshard_ok, 'transpose, cast and pad')
            wrong = 0
            do j = 1, size(columns, 2)
                do i = 1, size(columns, 1)
                    wanted = -7.5
                    if (first(2) + i <= 11) wanted = real(100*(first(1) + j) + first(2) + i + 1d0/3, real32)
                    if (columns(i, j) /= wanted) wrong = wrong + 1
                end do
            end do
            call expect(wrong == 0, 'every element, transposed, cast and padded')
        end do
        back = 0
        call reshard_redistribute(MPI_COMM_WORLD, narrow, wide, columns, back, error, permute=[2, 1], fill=0d0)
        call expect(error%code == reshard_ok, 'transpose, cast and strip')
        call expect(all(back == real(rows, real32)), 'every element on the way back')
        call reshard_redistribute(MPI_COMM_WORLD, wide, narrow, rows, columns, error, permute=[1, 1], fill=0.)
        call expect(error%code == reshard_mismatch, 'an order that names a dimension twice')
        call expect(index(error%message, 'once') > 0, 'the order in words')
        call reshard_release(wide)
        call reshard_release(narrow)
    end subroutine

    ! Rank r has 2 elements, r and r + 10. Afterwards all ranks have all elements.
    subroutine scalars_of_each_type()
        type(reshard_layout) :: source, target
        real(real32) :: r32(2), all_r32(8)
        complex(real32) :: c32(2), all_c32(8)
        complex(real64) :: c64(2), all_c64(8)
        integer(int32) :: i32(2), all_i32(8)
        integer(int64) :: i64(2), all_i64(2, 4)
        source = layout('f32[8@x]')
        target = layout('f32[8]')
        r32 = [rank, rank + 10]
        call reshard_redistribute(MPI_COMM_WORLD, source, target, r32, all_r32, error)
        call expect(all(all_r32 == [0, 10, 1, 11, 2, 12, 3, 13]), 'real(real32)')
        source = layout('c64[8@x]')
        target = layout('c64[8]')
        c32 = [cmplx(rank, 1), cmplx(rank + 10, 2)]
        call reshard_redistribute(MPI_COMM_WORLD, source, target, c32, all_c32, error)
        call expect(all(real(all_c32) == [0, 10, 1, 11, 2, 12, 3, 13]), 'complex(real32)')
        source = layout('c128[8@x]')
        target = layout('c128[8]')
        c64 = [cmplx(rank, 1, real64), cmplx(rank + 10, 2, real64)]
        call reshard_redistribute(MPI_COMM_WORLD, source, target, c64, all_c64, error)
        call expect(all(aimag(all_c64) == [1, 2, 1, 2, 1, 2, 1, 2]), 'complex(real64)')
        source = layout('i32[8@x]')
        target = layout('i32[8]')
        i32 = [rank, rank + 10]
        call reshard_redistribute(MPI_COMM_WORLD, source, target, i32, all_i32, error)
        call expect(all(all_i32 == [0, 10, 1, 11, 2, 12, 3, 13]), 'integer(int32)')
        source = layout('i64[4@x,2]')
        target = layout('i64[4,2]')
        i64 = [rank, rank + 10]
        call reshard_redistribute(MPI_COMM_WORLD, source, target, i64, all_i64, error)
        call expect(all(all_i64(2, :) == [10, 11, 12, 13]), 'integer(int64)')
    end subroutine

    subroutine plans()
        type(reshard_layout) :: source, target
        type(reshard_machine) :: machine
        type(reshard_options) :: options
        type(reshard_plan) :: plan, same
        type(reshard_verdict) :: verdict
        type(reshard_row), allocatable :: rows(:)
        type(reshard_backend) :: backend
        type(reshard_executor) :: executor
        real(real64) :: in(8, 2), out(2, 8)
        integer :: i
        integer(int64) :: sent
        source = layout('f64[8@x,8]')
        target = layout('f64[8,8@x]')
        call reshard_machine_make('dgx-h100:nodes=1', machine, error)
        options%vocabulary = reshard_collectives
        call reshard_plan_make(source, target, plan, error, options, machine=machine)
        call expect(error%code == reshard_ok, 'a plan')
        call reshard_plan_verdict(plan, verdict, error)
        call expect(verdict%steps == 1 .and. verdict%peak_bytes == 128 .and. verdict%optimal == 1, 'its verdict')
        call expect(index(reshard_plan_table(plan), 'all_to_all') > 0, 'its table')
        call reshard_plan_parse(reshard_plan_text(plan), same, error, options)
        call expect(reshard_plan_text(plan) == reshard_plan_text(same), 'its text')
        call reshard_schedule_rows(source, target, rank, reshard_send, rows, error)
        sent = 0
        do i = 1, size(rows)
            sent = sent + rows(i)%run_bytes*rows(i)%runs
        end do
        call expect(size(rows) == 4 .and. sent == 128, 'its rows')
        call reshard_backend_make(MPI_COMM_WORLD, backend, error)
        call reshard_executor_make(backend, plan, executor, error)
        do i = 1, 3
            in = 10*rank + i
            call reshard_run(executor, in, out, error)
            call expect(error%code == reshard_ok .and. all(out(:, 1) == i) .and. all(out(:, 8) == 30 + i), 'a run')
        end do
        call reshard_release(source)
        call reshard_release(backend)
        call reshard_release(plan)
        call reshard_release(same)
        call reshard_release(machine)
        call reshard_release(executor)
        call reshard_release(target)
    end subroutine

    subroutine registered()
        type(reshard_layout) :: source, target
        type(reshard_backend) :: backend
        type(reshard_registration) :: registration, second
        real(real64), allocatable :: in(:, :), out(:, :)
        real(real64) :: stack(8)
        integer :: i
        source = layout('f64[516@x,64]')
        target = layout('f64[516,64@x]')
        allocate (in(64, 129), out(16, 516))
        call reshard_backend_make(MPI_COMM_WORLD, backend, error)
        call reshard_memory_register(backend, in, registration, error)
        call expect(error%code == reshard_ok, 'registers an array')
        call reshard_memory_register(backend, out(:, 1:516:5), second, error)
        call expect(error%code == reshard_unsupported, 'registers no copy of an array')
        call reshard_memory_register(backend, in(:, 2:9), second, error)
        call expect(error%code == reshard_usage, 'registers nothing twice')
        call reshard_memory_register(backend, stack, second, error)
        call expect(error%code == reshard_usage, 'registers no stack')
        do i = 1, 4
            if (i == 2) call reshard_memory_register(backend, out, second, error)
            if (i == 3) call reshard_registration_end(registration, error)
            if (i == 4) call reshard_registration_end(registration, error)
            call expect(error%code == reshard_ok .or. i == 1, 'registers and ends')
            in = 10*rank + i
            call reshard_redistribute(MPI_COMM_WORLD, source, target, in, out, error)
            call expect(error%code == reshard_ok .and. all(out(:, 1:129) == i) .and. all(out(:, 388:516) == 30 + i), &
                'a move of registered arrays')
        end do
        call reshard_release(second)
        call reshard_release(backend)
        call reshard_release(source)
        call reshard_release(target)
    end subroutine

    ! Columns 2*rank+1 and 2*rank+2 of a(3, 8), periodic, with a halo of one column before and two after the block.
    subroutine halos()
        type(reshard_backend) :: backend
        type(reshard_halo_layout) :: columns
        type(reshard_halo) :: halo
        integer(int64), allocatable :: extents(:), first(:), last(:)
        real(real64) :: a(3, 5)
        real(real32) :: single(3, 5)
        integer(int32) :: line(3)
        integer :: i, j, wrong
        call reshard_backend_make(MPI_COMM_WORLD, backend, error)
        call reshard_halo_layout_parse(mesh, 'f64[8@x~(1,2)%,3]', columns, error)
        call expect(error%code == reshard_ok, 'a layout with halos')
        call reshard_halo_array(columns, rank, 2, extents, first, last, error)
        call expect(all(extents == [5, 3]) .and. all(first == [2, 1]) .and. all(last == [3, 3]), 'the array of a rank')
        call reshard_halo_make(backend, columns, halo, error)
        call expect(error%code == reshard_ok, 'a halo')
        a = -1
        do j = 2, 3
            a(:, j) = [(100*i + 2*rank + j, i=1, 3)]
        end do
        call reshard_halo_fill(halo, a, error)
        call expect(error%code == reshard_ok, 'a fill')
        wrong = 0
        do j = 1, 5
            do i = 1, 3
                if (a(i, j) /= 100*i + modulo(2*rank + j - 2, 8) + 2) wrong = wrong + 1
            end do
        end do
        call expect(wrong == 0, 'every cell of a fill')
        ! The first column of a block is the fourth cell of the rank before; the second is the fifth there, and the first
        ! cell of the rank behind.
        a = 1
        call reshard_halo_sum(halo, a, error)
        call expect(error%code == reshard_ok, 'a sum')
        call expect(all(a(:, 2) == 2) .and. all(a(:, 3) == 3), 'every element of a sum')
        call expect(all(a(:, [1, 4, 5]) == 1), 'the halo after a sum')
        call reshard_halo_fill(halo, single, error)
        call expect(error%code == reshard_mismatch, 'another type')
        call reshard_release(halo)
        call reshard_release(columns)
        ! Another type of elements.
        call reshard_halo_layout_parse(mesh, 'i32[4@x~1]', columns, error)
        call reshard_halo_make(backend, columns, halo, error)
        line = [-1, rank, -1]
        call reshard_halo_fill(halo, line, error)
        call expect(all(line == [max(rank - 1, -1), rank, merge(rank + 1, -1, rank < 3)]), 'integer(int32)')
        call reshard_halo_layout_parse(mesh, 'i32[4@x~]', columns, error)
        call expect(error%code == reshard_syntax .and. error%offset == 8, 'no cells')
        call reshard_release(halo)
        call reshard_release(columns)
        call reshard_release(backend)
    end subroutine

    ! Rank r owns columns 2r+1 and 2r+2 of a(3, 8), with a(i, j) = 100 i + j, and wants all of row r mod 3 + 1. Then rank 2
    ! loses its tile, and the replica of rank 0 gives it back.
    subroutine boxes_and_rebuilds()
        type(reshard_backend) :: backend
        type(reshard_boxes) :: boxes
        type(reshard_rebuild) :: rebuild
        type(reshard_mesh) :: pairs
        type(reshard_layout) :: halves
        integer(int64) :: none(2, 2, 0)
        real(real64) :: own(3, 2), row(8)
        real(real32) :: single(3, 2), other(8)
        integer(int32), allocatable :: kept(:), again(:)
        integer :: i, j
        call reshard_backend_make(MPI_COMM_WORLD, backend, error)
        call reshard_boxes_make(backend, 'f64', [8_int64, 3_int64], &
            reshape(int([2*rank + 1, 2*rank + 2, 1, 3], int64), [2, 2, 1]), &
            reshape(int([1, 8, modulo(rank, 3) + 1, modulo(rank, 3) + 1], int64), [2, 2, 1]), boxes, error)
        call expect(error%code == reshard_ok, 'boxes')
        call expect(reshard_boxes_received_bytes(boxes) == 6*8, 'six elements of others')
        own = reshape([((100*i + 2*rank + j, i=1, 3), j=1, 2)], [3, 2])
        row = -1
        call reshard_boxes_run(boxes, own, row, error)
        call expect(error%code == reshard_ok, 'an exchange of boxes')
        call expect(all(row == [(100*(modulo(rank, 3) + 1) + j, j=1, 8)]), 'every element of a row')
        call reshard_boxes_run(boxes, single, other, error)
        call expect(error%code == reshard_mismatch, 'boxes of another type')
        call reshard_release(boxes)
        call reshard_boxes_make(backend, 'f64', [8_int64, 3_int64], none, &
            reshape([2_int64, 2_int64, 3_int64, 3_int64], [2, 2, 1]), boxes, error)
        call expect(error%code == reshard_mismatch .and. index(error%message, 'no rank owns element [1, 2]') > 0, &
            'an element that nobody owns')
        call reshard_boxes_make(backend, 'f64', [8_int64], none, none, boxes, error)
        call expect(error%code == reshard_mismatch .and. index(error%message, 'dimensions of the shape') > 0, &
            'boxes of other dimensions')

        call reshard_mesh_parse('data=2,model=2', pairs, error)
        call reshard_layout_parse(pairs, 'i32[10@model]', halves, error)
        call reshard_rebuild_make(backend, halves, halves, [2], rebuild, error)
        call expect(error%code == reshard_ok, 'a rebuild')
        call expect(reshard_rebuild_received_bytes(rebuild) == merge(20, 0, rank == 2), 'five elements of the replica')
        allocate (kept(5))
        kept(:) = [(10*modulo(rank, 2) + i, i=1, 5)]
        if (rank == 2) kept = kept(:0)
        allocate (again(5))
        call reshard_rebuild_run(rebuild, kept, again, error)
        call expect(error%code == reshard_ok, 'a run of a rebuild')
        call expect(all(again == [(10*modulo(rank, 2) + i, i=1, 5)]), 'every element of a rebuild')
        call reshard_rebuild_run(rebuild, single, other, error)
        call expect(error%code == reshard_mismatch, 'a rebuild of another type')
        call reshard_release(rebuild)
        call reshard_rebuild_make(backend, halves, halves, [0, 2], rebuild, error)
        call expect(error%code == reshard_infeasible .and. index(error%message, '[0:5]') > 0, 'a lost box')
        call reshard_rebuild_make(backend, halves, halves, [2], rebuild, error, devices=[0, 1, 2])
        call expect(error%code == reshard_mismatch, 'too few devices')
        call reshard_rebuild_make(backend, halves, halves, [2], rebuild, error, devices=[3, 2, 1, 0])
        call expect(error%code == reshard_ok, 'ranks in another order')
        call expect(reshard_rebuild_received_bytes(rebuild) == merge(20, 0, rank == 1), 'rank 1 is device 2')
        call reshard_release(rebuild)
        call reshard_release(halves)
        call reshard_release(pairs)
        call reshard_release(backend)
    end subroutine

    subroutine errors()
        type(reshard_layout) :: wrong
        type(reshard_mesh) :: none
        call reshard_layout_parse(mesh, 'f32[8@z]', wrong, error)
        call expect(error%code == reshard_bad_layout .and. error%offset == 6, 'an unknown axis')
        call expect(error%text == 'f32[8@z]' .and. index(error%describe, '^') > 0, 'its caret')
        call reshard_layout_parse(none, 'f32[8]', wrong, error)
        call expect(error%code == reshard_usage, 'no mesh')
        call expect(reshard_layout_text(wrong) == '' .and. reshard_tile_count(wrong, 0) == -1, 'no layout')
        call expect(len(reshard_version()) > 4, 'the version')
    end subroutine

end program
