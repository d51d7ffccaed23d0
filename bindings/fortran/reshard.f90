! reshard for Fortran, over the C interface. Communicators are integers, as `use mpi` has them; of mpi_f08 pass %MPI_VAL.
! A layout counts dimensions in C's order, slowest first: an array a(m, n) is f64[n,m], and its tile on a rank is
! a(extents(2), extents(1)). docs/fortran.md shows all of it.
!
! Each call reports to its last argument, whose code is reshard_ok where it succeeded. What a call makes is given back by
! reshard_release, in any order; what ranks made together all ranks release in the same order.
module reshard
    use, intrinsic :: iso_c_binding
    use, intrinsic :: iso_fortran_env, only: int32, int64, real32, real64
    implicit none
    private

    ! How a call ended: a code, one sentence, and for text the first wrong place in it.
    type, public :: reshard_error
        integer :: code = 0
        character(:), allocatable :: message  ! one sentence
        character(:), allocatable :: text     ! the offending text; '' where there is none
        integer(int64) :: offset = 0          ! bytes of the text before the wrong place
        character(:), allocatable :: describe ! the sentence, the text, and a caret under the place
        type(c_ptr), private :: why = c_null_ptr
    end type

    include 'reshard_tables.inc'
    integer(c_int), parameter, public :: reshard_send = 0, reshard_receive = 1

    ! A handle of the C interface.
    type :: held
        private
        type(c_ptr) :: handle = c_null_ptr
    end type

    ! Named axes over ranks.
    type, extends(held), public :: reshard_mesh
    end type
    ! The type of a distributed array.
    type, extends(held), public :: reshard_layout
    end type
    ! What time is estimated on.
    type, extends(held), public :: reshard_machine
    end type
    ! A way from one layout to another, judged.
    type, extends(held), public :: reshard_plan
    end type
    ! The ranks of a communicator.
    type, extends(held), public :: reshard_backend
    end type
    ! A plan that is ready to run any number of times.
    type, extends(held), public :: reshard_executor
    end type

    ! A layout whose tiles overlap: blocks, and a halo for each dimension.
    type, extends(held), public :: reshard_halo_layout
    end type
    ! An array with halos, ready to be filled and summed any number of times.
    type, extends(held), public :: reshard_halo
    end type

    ! The boxes that each rank has and wants, ready to be exchanged any number of times.
    type, extends(held), public :: reshard_boxes
    end type
    ! An array that is rebuilt from the replicas that are left when devices are lost.
    type, extends(held), public :: reshard_rebuild
    end type

    ! Memory of the program's while peers reach it without a copy.
    type, extends(held), public :: reshard_registration
    end type

    ! Runs of bytes between two tiles (struct reshard_row).
    type, bind(c), public :: reshard_row
        integer(c_int64_t) :: array, peer, source_offset, target_offset, run_bytes, runs, source_stride, target_stride
    end type

    ! How an array changes while it moves (struct reshard_move_options).
    type, bind(c) :: move_options
        integer(c_size_t) :: size = 0
        integer(c_int32_t) :: cast = 0, pad = 0
        type(c_ptr) :: fill = c_null_ptr, permute = c_null_ptr
        integer(c_int64_t) :: permute_count = 0
    end type

    ! The boxes of one rank (struct reshard_rank_boxes).
    type, bind(c) :: rank_boxes
        integer(c_size_t) :: size = 0
        type(c_ptr) :: have = c_null_ptr
        integer(c_int64_t) :: have_count = 0
        type(c_ptr) :: want = c_null_ptr
        integer(c_int64_t) :: want_count = 0
        type(c_ptr) :: have_places = c_null_ptr, want_places = c_null_ptr
    end type

    ! The memory of one array (struct reshard_buffers).
    type, bind(c) :: buffers
        integer(c_size_t) :: size = 0
        type(c_ptr) :: source = c_null_ptr, donated = c_null_ptr
        integer(c_int64_t) :: source_bytes = 0
        type(c_ptr) :: target = c_null_ptr
        integer(c_int64_t) :: target_bytes = 0
        type(c_ptr) :: workspace = c_null_ptr
        integer(c_int64_t) :: workspace_bytes = 0
    end type

    ! Moves this rank's tile of `source` from `in` to its tile of `target` in `out`, contiguous arrays of any rank and of
    ! the layouts' type: (communicator, source, target, in, out, error, permute, fill). Collective. Prepares the first
    ! time. Arrays of two kinds are cast: real32 and real64, or int32 to int64. permute is optional and transposes:
    ! dimension k of the array of `target` is dimension permute(k) of the array of `source`. fill is optional, of the
    ! type of `out`. With it the extents may differ, and elements that the source lacks become fill.
    interface reshard_redistribute
        module procedure redistribute_r32_r32, redistribute_r64_r64, redistribute_c32_c32, redistribute_c64_c64, &
            redistribute_i32_i32, redistribute_i64_i64, redistribute_r32_r64, redistribute_r64_r32, redistribute_i32_i64
    end interface

    ! The same by an executor: (executor, in, out, error).
    interface reshard_run
        module procedure run_r32, run_r64, run_c32, run_c64, run_i32, run_i64
    end interface

    ! Fills the halo of an array from the blocks of all ranks: (halo, array, error). The array is contiguous, of any rank,
    ! with its block and its halo. Collective. No other cell is written.
    interface reshard_halo_fill
        module procedure fill_r32, fill_r64, fill_c32, fill_c64, fill_i32, fill_i64
    end interface

    ! Adds each cell of the halos to the element of its owner's block, the adjoint of a fill: (halo, array, error).
    ! Collective. The first call prepares.
    interface reshard_halo_sum
        module procedure sum_r32, sum_r64, sum_c32, sum_c64, sum_i32, sum_i64
    end interface

    ! Copies owned boxes to all wanted boxes: (boxes, have, want, error). Both arrays are contiguous, of any rank, and hold
    ! the boxes of this rank one after another. In each box the last dimension of the shape is the fastest. Collective.
    interface reshard_boxes_run
        module procedure boxes_r32, boxes_r64, boxes_c32, boxes_c64, boxes_i32, boxes_i64
    end interface

    ! Rebuilds an array: (rebuild, in, out, error). `in` is this rank's tile before the loss, of size 0 if it is lost or if
    ! the rank had none. `out` gets the tile afterwards. Collective.
    interface reshard_rebuild_run
        module procedure rebuild_r32, rebuild_r64, rebuild_c32, rebuild_c64, rebuild_i32, rebuild_i64
    end interface

    ! Makes an array of the program's, contiguous and of any rank, as fast as there is: (backend, array, registration,
    ! error). Before a loop; reshard_registration_end before it is deallocated. Not collective.
    interface reshard_memory_register
        module procedure register_r32, register_r64, register_c32, register_c64, register_i32, register_i64
    end interface

    public :: reshard_memory_register, reshard_registration_end, reshard_release, reshard_redistribute, &
        reshard_run, reshard_version, reshard_mesh_parse, reshard_layout_parse, reshard_layout_text, reshard_tile, &
        reshard_tile_count, reshard_machine_make, reshard_plan_make, reshard_plan_parse, reshard_plan_text, &
        reshard_plan_table, reshard_plan_verdict, reshard_schedule_rows, reshard_backend_make, &
        reshard_executor_make, reshard_clear, reshard_halo_layout_parse, reshard_halo_array, reshard_halo_make, &
        reshard_halo_fill, reshard_halo_sum, reshard_boxes_make, reshard_boxes_received_bytes, reshard_boxes_run, &
        reshard_rebuild_make, reshard_rebuild_received_bytes, reshard_rebuild_run

    include 'reshard_c.inc'

contains

    ! Texts.

    function text_of(chars) result(text)
        type(c_ptr), intent(in) :: chars
        character(:), allocatable :: text
        character(kind=c_char), pointer :: bytes(:)
        integer(c_size_t) :: count, i
        count = 0
        if (c_associated(chars)) count = c_strlen(chars)
        allocate (character(count) :: text)
        if (count == 0) return
        call c_f_pointer(chars, bytes, [count])
        do i = 1, count
            text(i:i) = bytes(i)
        end do
    end function

    ! Fills an error from its handle, and gives the handle back.
    subroutine report(error)
        type(reshard_error), intent(inout) :: error
        error%message = text_of(c_error_message(error%why))
        error%text = text_of(c_error_text(error%why))
        error%describe = text_of(c_error_describe(error%why))
        error%offset = c_error_offset(error%why)
        call c_release(error%why)
        error%why = c_null_ptr
    end subroutine

    ! An error of this module.
    subroutine refuse(code, message, error)
        integer, intent(in) :: code
        character(*), intent(in) :: message
        type(reshard_error), intent(inout) :: error
        error%code = code
        error%message = message
        error%describe = message
    end subroutine

    function reshard_version() result(text)
        character(:), allocatable :: text
        text = text_of(c_version())
    end function

    ! Meshes and layouts.

    ! Named axes: 'x=2,y=3'.
    subroutine reshard_mesh_parse(text, mesh, error)
        character(*), intent(in) :: text
        type(reshard_mesh), intent(out) :: mesh
        type(reshard_error), intent(out) :: error
        error%code = c_mesh_parse(text//c_null_char, mesh%handle, error%why)
        call report(error)
    end subroutine

    ! dtype, extents slowest first, and the axes that cut each: 'f64[840@x,840]'.
    subroutine reshard_layout_parse(mesh, text, layout, error)
        type(reshard_mesh), intent(in) :: mesh
        character(*), intent(in) :: text
        type(reshard_layout), intent(out) :: layout
        type(reshard_error), intent(out) :: error
        error%code = c_layout_parse(mesh%handle, text//c_null_char, layout%handle, error%why)
        call report(error)
    end subroutine

    function reshard_layout_text(layout) result(text)
        type(reshard_layout), intent(in) :: layout
        character(:), allocatable :: text
        text = text_of(c_layout_text(layout%handle))
    end function

    ! What a rank holds, slowest dimension first: extents, and the global index of its first element, from 0.
    subroutine reshard_tile(layout, device, extents, first, error)
        type(reshard_layout), intent(in) :: layout
        integer, intent(in) :: device
        integer(int64), allocatable, intent(out) :: extents(:), first(:)
        type(reshard_error), intent(out) :: error
        integer(c_int64_t) :: dims
        dims = max(0_c_int64_t, c_layout_dims(layout%handle))
        allocate (extents(dims), first(dims))
        error%code = c_layout_tile(layout%handle, int(device, c_int64_t), extents, first, dims, error%why)
        call report(error)
    end subroutine

    ! Elements that a rank holds; -1 for no layout.
    function reshard_tile_count(layout, device) result(count)
        type(reshard_layout), intent(in) :: layout
        integer, intent(in) :: device
        integer(int64) :: count
        count = c_layout_tile_count(layout%handle, int(device, c_int64_t))
    end function

    ! Plans.

    ! 'laptop', 'dgx-h100:nodes=4', ...
    subroutine reshard_machine_make(specification, machine, error)
        character(*), intent(in) :: specification
        type(reshard_machine), intent(out) :: machine
        type(reshard_error), intent(out) :: error
        error%code = c_machine_make(specification//c_null_char, machine%handle, error%why)
        call report(error)
    end subroutine

    function completed(options, backend, machine) result(asked)
        type(reshard_options), intent(in), optional :: options
        type(reshard_backend), intent(in), optional :: backend
        type(reshard_machine), intent(in), optional :: machine
        type(reshard_options) :: asked
        if (present(options)) asked = options
        asked%size = c_sizeof(asked)
        if (present(backend)) asked%backend = backend%handle
        if (present(machine)) asked%machine = machine%handle
    end function

    ! The cheapest plan found, for what `backend` can do and priced on `machine`.
    subroutine reshard_plan_make(source, target, plan, error, options, backend, machine)
        type(reshard_layout), intent(in) :: source, target
        type(reshard_plan), intent(out) :: plan
        type(reshard_error), intent(out) :: error
        type(reshard_options), intent(in), optional :: options
        type(reshard_backend), intent(in), optional :: backend
        type(reshard_machine), intent(in), optional :: machine
        error%code = c_plan_make(source%handle, target%handle, completed(options, backend, machine), plan%handle, error%why)
        call report(error)
    end subroutine

    ! A plan that somebody wrote down, judged.
    subroutine reshard_plan_parse(text, plan, error, options, backend, machine)
        character(*), intent(in) :: text
        type(reshard_plan), intent(out) :: plan
        type(reshard_error), intent(out) :: error
        type(reshard_options), intent(in), optional :: options
        type(reshard_backend), intent(in), optional :: backend
        type(reshard_machine), intent(in), optional :: machine
        error%code = c_plan_parse(text//c_null_char, completed(options, backend, machine), plan%handle, error%why)
        call report(error)
    end subroutine

    function reshard_plan_text(plan) result(text)
        type(reshard_plan), intent(in) :: plan
        character(:), allocatable :: text
        text = text_of(c_plan_text(plan%handle))
    end function

    ! The plan as a table for people; '' for no plan.
    function reshard_plan_table(plan) result(table)
        type(reshard_plan), intent(in) :: plan
        character(:), allocatable :: table
        type(c_ptr) :: text, why
        integer(c_int) :: code
        text = c_null_ptr
        why = c_null_ptr
        code = c_plan_table(plan%handle, text, why)
        table = text_of(c_text_chars(text))
        call c_release(text)
        call c_release(why)
    end function

    subroutine reshard_plan_verdict(plan, verdict, error)
        type(reshard_plan), intent(in) :: plan
        type(reshard_verdict), intent(out) :: verdict
        type(reshard_error), intent(out) :: error
        verdict%size = c_sizeof(verdict)
        error%code = c_plan_verdict(plan%handle, verdict, error%why)
        call report(error)
    end subroutine

    ! What a rank sends (reshard_send) or receives (reshard_receive), as bytes of row-major tiles in C's order.
    subroutine reshard_schedule_rows(source, target, rank, side, rows, error)
        type(reshard_layout), intent(in) :: source, target
        integer, intent(in) :: rank
        integer(c_int), intent(in) :: side
        type(reshard_row), allocatable, intent(out) :: rows(:)
        type(reshard_error), intent(out) :: error
        type(c_ptr) :: handle
        type(reshard_row), pointer :: all(:)
        handle = c_null_ptr
        error%code = c_schedule_rows(source%handle, target%handle, int(rank, c_int64_t), side, handle, error%why)
        call report(error)
        allocate (rows(max(0_c_int64_t, c_rows_count(handle))))
        if (size(rows) > 0) then
            call c_f_pointer(c_rows_data(handle), all, [size(rows)])
            rows = all
        end if
        call c_release(handle)
    end subroutine

    ! Moves.

    ! Collective over the communicator, which is borrowed.
    subroutine reshard_backend_make(communicator, backend, error)
        integer, intent(in) :: communicator
        type(reshard_backend), intent(out) :: backend
        type(reshard_error), intent(out) :: error
        error%code = c_mpi_backend(int(communicator, c_int), c_null_ptr, backend%handle, error%why)
        call report(error)
    end subroutine

    ! Collective.
    subroutine reshard_executor_make(backend, plan, executor, error)
        type(reshard_backend), intent(in) :: backend
        type(reshard_plan), intent(in) :: plan
        type(reshard_executor), intent(out) :: executor
        type(reshard_error), intent(out) :: error
        error%code = c_executor_make(backend%handle, plan%handle, c_null_ptr, c_null_ptr, executor%handle, error%why)
        call report(error)
    end subroutine

    ! Arrays with halos.

    ! A layout with the cells of each halo after the dimension: 'f64[840@x~1%,840@y~(2,0)]'; % is periodic.
    subroutine reshard_halo_layout_parse(mesh, text, layout, error)
        type(reshard_mesh), intent(in) :: mesh
        character(*), intent(in) :: text
        type(reshard_halo_layout), intent(out) :: layout
        type(reshard_error), intent(out) :: error
        error%code = c_halo_layout_parse(mesh%handle, text//c_null_char, layout%handle, error%why)
        call report(error)
    end subroutine

    ! The array of a rank, slowest dimension first: its extents, and the places of the first and the last cell of its
    ! block, from 1. `dims`: dimensions of the array.
    subroutine reshard_halo_array(layout, device, dims, extents, first, last, error)
        type(reshard_halo_layout), intent(in) :: layout
        integer, intent(in) :: device, dims
        integer(int64), allocatable, intent(out) :: extents(:), first(:), last(:)
        type(reshard_error), intent(out) :: error
        allocate (extents(max(0, dims)), first(max(0, dims)), last(max(0, dims)))
        extents = 0
        first = 0
        last = 0
        error%code = c_halo_layout_array(layout%handle, int(device, c_int64_t), extents, first, last, &
            int(dims, c_int64_t), error%why)
        first = first + 1
        call report(error)
    end subroutine

    ! Collective.
    subroutine reshard_halo_make(backend, layout, halo, error)
        type(reshard_backend), intent(in) :: backend
        type(reshard_halo_layout), intent(in) :: layout
        type(reshard_halo), intent(out) :: halo
        type(reshard_error), intent(out) :: error
        error%code = c_halo_make(backend%handle, layout%handle, c_null_ptr, halo%handle, error%why)
        call report(error)
    end subroutine

    ! Elements of another type than the layout's are refused by this rank: NULL is told to all that wait for it.
    subroutine halo_any(halo, sums, dtype, array, bytes, error)
        type(reshard_halo), intent(in) :: halo
        logical, intent(in) :: sums
        character(*), intent(in) :: dtype
        type(c_ptr), intent(in) :: array
        integer(c_int64_t), intent(in) :: bytes
        type(reshard_error), intent(out) :: error
        type(c_ptr) :: given
        integer(c_int64_t) :: given_bytes
        character(:), allocatable :: own
        own = text_of(c_halo_dtype(halo%handle))
        given = array
        given_bytes = bytes
        if (own /= dtype) then
            given = c_null_ptr
            given_bytes = 1
        end if
        if (sums) then
            error%code = c_halo_sum(halo%handle, given, given_bytes, error%why)
        else
            error%code = c_halo_fill(halo%handle, given, given_bytes, error%why)
        end if
        call report(error)
        if (c_associated(halo%handle) .and. own /= dtype) call refuse(reshard_mismatch, &
            'the elements are '//dtype//', those of the layout '//own, error)
    end subroutine

    ! Boxes that ranks name.

    ! Collective: each rank gives its own boxes of an array with these extents, slowest first. have(:, k, i) are the first
    ! and the last index of owned box i in dimension k, from 1; want(:, k, i) the same of wanted box i. A last index before
    ! the first makes a box empty. Wanted boxes may overlap.
    subroutine reshard_boxes_make(backend, dtype, shape, have, want, boxes, error)
        type(reshard_backend), intent(in) :: backend
        character(*), intent(in) :: dtype
        integer(int64), intent(in) :: shape(:), have(:, :, :), want(:, :, :)
        type(reshard_boxes), intent(out) :: boxes
        type(reshard_error), intent(out) :: error
        integer(c_int64_t), allocatable, target :: owned(:, :, :), wanted(:, :, :)
        integer(c_int64_t), allocatable :: extents(:)
        type(rank_boxes) :: own
        logical :: fits
        fits = all([size(have, 1), size(want, 1)] == 2) .and. all([size(have, 2), size(want, 2)] == size(shape))
        allocate (owned, source=have)
        allocate (wanted, source=want)
        allocate (extents, source=shape)
        own%size = c_sizeof(own)
        own%have_count = size(have, 3)
        own%want_count = size(want, 3)
        if (size(owned) > 0) then
            owned(1, :, :) = owned(1, :, :) - 1
            own%have = c_loc(owned)
        end if
        if (size(wanted) > 0) then
            wanted(1, :, :) = wanted(1, :, :) - 1
            own%want = c_loc(wanted)
        end if
        if (.not. fits) own%size = 0  ! refused by this rank, and told to all
        error%code = c_boxes_make(backend%handle, dtype//c_null_char, extents, size(extents, kind=c_int64_t), own, &
            boxes%handle, error%why)
        call report(error)
        if (c_associated(backend%handle) .and. .not. fits) call refuse(reshard_mismatch, &
            'have and want are arrays (2, dimensions of the shape, boxes)', error)
    end subroutine

    ! Bytes that a run brings to this rank from others, the fewest possible.
    function reshard_boxes_received_bytes(boxes) result(bytes)
        type(reshard_boxes), intent(in) :: boxes
        integer(int64) :: bytes
        bytes = c_boxes_received_bytes(boxes%handle)
    end function

    ! Elements of another type than the boxes' are refused by this rank: NULL is told to all that wait for it.
    subroutine boxes_any(boxes, dtype, have, have_bytes, want, want_bytes, error)
        type(reshard_boxes), intent(in) :: boxes
        character(*), intent(in) :: dtype
        type(c_ptr), intent(in) :: have, want
        integer(c_int64_t), intent(in) :: have_bytes, want_bytes
        type(reshard_error), intent(out) :: error
        character(:), allocatable :: own
        own = text_of(c_boxes_dtype(boxes%handle))
        if (own == dtype) then
            error%code = c_boxes_run(boxes%handle, have, have_bytes, want, want_bytes, error%why)
        else
            error%code = c_boxes_run(boxes%handle, c_null_ptr, 1_c_int64_t, c_null_ptr, 1_c_int64_t, error%why)
        end if
        call report(error)
        if (c_associated(boxes%handle) .and. own /= dtype) call refuse(reshard_mismatch, &
            'the elements are '//dtype//', those of the boxes '//own, error)
    end subroutine

    ! Rebuilds.

    ! Collective. The tiles of the devices in `lost` are gone. Both layouts name devices as before the loss. devices(r + 1)
    ! is the device that rank r is; if it is not given, rank r is device r.
    subroutine reshard_rebuild_make(backend, source, target, lost, rebuild, error, devices)
        type(reshard_backend), intent(in) :: backend
        type(reshard_layout), intent(in) :: source, target
        integer, intent(in) :: lost(:)
        type(reshard_rebuild), intent(out) :: rebuild
        type(reshard_error), intent(out) :: error
        integer, intent(in), optional :: devices(:)
        integer(c_int64_t), allocatable :: gone(:)
        integer(c_int64_t), allocatable, target :: named(:)
        type(c_ptr) :: first
        logical :: fits
        allocate (gone, source=int(lost, c_int64_t))
        first = c_null_ptr
        fits = .true.
        if (present(devices)) then
            allocate (named, source=int(devices, c_int64_t))
            fits = size(devices, kind=c_int64_t) == c_backend_size(backend%handle)
            if (fits) first = c_loc(named)
        end if
        error%code = c_rebuild_make(backend%handle, [source%handle], [target%handle], merge(1_c_int64_t, -1_c_int64_t, fits), &
            gone, size(gone, kind=c_int64_t), first, rebuild%handle, error%why)
        call report(error)
        if (c_associated(backend%handle) .and. .not. fits) call refuse(reshard_mismatch, &
            'devices names one device for each rank', error)
    end subroutine

    ! Bytes that a run brings to this rank from others, the fewest possible.
    function reshard_rebuild_received_bytes(rebuild) result(bytes)
        type(reshard_rebuild), intent(in) :: rebuild
        integer(int64) :: bytes
        bytes = c_rebuild_received_bytes(rebuild%handle)
    end function

    subroutine rebuild_any(rebuild, dtype, in, in_bytes, out, out_bytes, error)
        type(reshard_rebuild), intent(in) :: rebuild
        character(*), intent(in) :: dtype
        type(c_ptr), intent(in) :: in, out
        integer(c_int64_t), intent(in) :: in_bytes, out_bytes
        type(reshard_error), intent(out) :: error
        character(:), allocatable :: own
        type(buffers) :: memory(1)
        own = text_of(c_rebuild_dtype(rebuild%handle, 0_c_int64_t))
        if (own == dtype) memory(1)%size = c_sizeof(memory(1))  ! else refused by this rank, and told to all
        memory(1)%source = in
        memory(1)%source_bytes = in_bytes
        memory(1)%target = out
        memory(1)%target_bytes = out_bytes
        error%code = c_rebuild_run(rebuild%handle, memory, 1_c_int64_t, error%why)
        call report(error)
        if (c_associated(rebuild%handle) .and. own /= dtype) call refuse(reshard_mismatch, &
            'the elements are '//dtype//', those of the layout '//own, error)
    end subroutine

    ! The array is as any other again; done already, nothing. An error while a run uses it.
    subroutine reshard_registration_end(registration, error)
        type(reshard_registration), intent(inout) :: registration
        type(reshard_error), intent(out) :: error
        if (c_associated(registration%handle)) error%code = c_registration_end(registration%handle, error%why)
        call report(error)
        if (error%code == reshard_ok) call reshard_release(registration)
    end subroutine

    ! A copy that the compiler makes of what is not contiguous is not the array.
    subroutine register_any(backend, address, bytes, contiguous, registration, error)
        type(reshard_backend), intent(in) :: backend
        type(c_ptr), intent(in) :: address
        integer(c_int64_t), intent(in) :: bytes
        logical, intent(in) :: contiguous
        type(reshard_registration), intent(inout) :: registration
        type(reshard_error), intent(out) :: error
        call reshard_release(registration)
        if (contiguous) &
            error%code = c_memory_register(backend%handle, address, bytes, 0_c_int, registration%handle, error%why)
        call report(error)
        if (.not. contiguous) call refuse(reshard_unsupported, 'the array is not contiguous', error)
    end subroutine

    ! Collective: gives back what reshard_redistribute keeps on the communicator.
    subroutine reshard_clear(communicator, error)
        integer, intent(in) :: communicator
        type(reshard_error), intent(out) :: error
        error%code = c_mpi_clear(int(communicator, c_int), error%why)
        call report(error)
    end subroutine

    ! Elements of another type than the layout's are of other ranks' business too: NULL is told to all of them.
    subroutine redistribute_any(communicator, source, target, from_type, to_type, in, in_bytes, out, out_bytes, error, &
            permute, fill)
        integer, intent(in) :: communicator
        type(reshard_layout), intent(in) :: source, target
        character(*), intent(in) :: from_type, to_type
        type(c_ptr), intent(in) :: in, out
        integer(c_int64_t), intent(in) :: in_bytes, out_bytes
        type(reshard_error), intent(out) :: error
        integer, intent(in), optional :: permute(:)
        type(*), intent(in), optional, target :: fill
        type(move_options), target :: options
        integer(c_int64_t), allocatable, target :: order(:)
        type(c_ptr) :: from
        integer :: i, dims
        options%size = c_sizeof(options)
        if (from_type /= to_type) options%cast = 1
        if (present(permute)) then  ! a layout counts dimensions from the other end, and from 0
            dims = size(permute)
            allocate (order(dims))
            do i = 1, dims
                order(i) = dims - permute(dims + 1 - i)
            end do
            options%permute = c_loc(order)
            options%permute_count = dims
        end if
        if (present(fill)) then
            options%pad = 1
            options%fill = c_loc(fill)
        end if
        from = source%handle
        if (text_of(c_layout_dtype(source%handle)) /= from_type) from = c_null_ptr
        if (text_of(c_layout_dtype(target%handle)) /= to_type) from = c_null_ptr
        error%code = c_mpi_redistribute(int(communicator, c_int), from, target%handle, options, in, in_bytes, out, &
            out_bytes, error%why)
        call report(error)
        if (.not. c_associated(source%handle) .or. .not. c_associated(target%handle) .or. c_associated(from)) return
        call refuse(reshard_mismatch, 'the elements are '//from_type//' and '//to_type//', those of the layouts '// &
            text_of(c_layout_dtype(source%handle))//' and '//text_of(c_layout_dtype(target%handle)), error)
    end subroutine

    subroutine run_any(executor, in, in_bytes, out, out_bytes, error)
        type(reshard_executor), intent(in) :: executor
        type(c_ptr), intent(in) :: in, out
        integer(c_int64_t), intent(in) :: in_bytes, out_bytes
        type(reshard_error), intent(out) :: error
        error%code = c_executor_run(executor%handle, in, in_bytes, out, out_bytes, error%why)
        call report(error)
    end subroutine

    include 'reshard_types.inc'  ! the procedures for each type of elements, from element_type*.inc.in

    ! Gives back the handle that a call has made. A second call does nothing.
    subroutine reshard_release(handle)
        class(held), intent(inout) :: handle
        call c_release(handle%handle)
        handle%handle = c_null_ptr
    end subroutine

end module
