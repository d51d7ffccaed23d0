(* The claims, one sentence each.  Their statements are where they are proved; `make check` prints the assumptions
   of every one and compares them with Assumptions.expected: none has any. *)
From Reshard Require Import
  Mesh Layout Step Meaning Simulate Received Check Protocol Bound ClosedForm Wanted Schedule Boxes Reduce Sums Certify Between BetweenBound Renumber View Granules Digest Program
  Primes Exist Permutes Examples.

(* A typed step of any of the eight kinds takes a distribution of an array to a distribution of the same array. *)
Print Assumptions step_sound.
(* No device receives more in a step than the step's closed form. *)
Print Assumptions received_certified.
(* An accepted plan delivers the target, holds no tile above the bound, and receives at most the certified number. *)
Print Assumptions check_plan_sound.
(* ... counted for one device throughout, where there is one mesh. *)
Print Assumptions check_plan_received.
(* Every pair of layouts with equally many summands has an accepted plan, within the memory of its ends. *)
Print Assumptions exchange_accepted.
(* A permute moves whole tiles one to one. *)
Print Assumptions permute_bijective.
(* Schedules that pass do what their step means: every element once, from a holder. *)
Print Assumptions schedules_sound.
(* Any protocol: a device receives what it wants and does not hold. *)
Print Assumptions recv_lower_bound.
(* Any protocol: so does a group of devices, over the links into it. *)
Print Assumptions group_lower_bound.
(* On every device at once no protocol receives less than an exchange. *)
Print Assumptions exchange_optimal.
(* ... and no accepted plan of movements does. *)
Print Assumptions plan_lower_bound.
(* An exchange also serves any wanted elements, such as halos: each comes from a holder, and no protocol brings fewer ... *)
Print Assumptions wanted_sound.
Print Assumptions wanted_optimal.
(* ... not where several cells of a device hold one element; and of a tile and its halo the halo comes. *)
Print Assumptions cells_optimal.
Print Assumptions wide_received.
(* Owners and wants as boxes, which the driver reads: each wanted cell is there once, from an owner ... *)
Print Assumptions served_once.
(* ... each element has one owner, or owners with equal boxes ... *)
Print Assumptions owned_once.
(* ... and no protocol brings a rank fewer elements. *)
Print Assumptions boxes_optimal.
(* Device zero receives at least target tile - product of the smaller tile extents: the heuristic is admissible. *)
Print Assumptions lower_bound_tiles.
Print Assumptions heuristic_admissible.
(* That is the optimum where in every dimension one axis list is a prefix of the other and boundaries nest. *)
Print Assumptions lower_bound_comparable.
(* If two lists part ways and sizes divide, some device receives its whole target tile. *)
Print Assumptions lower_bound_incomparable.
(* The count of an exchange is exact on every device: its tile less what intervals share. *)
Print Assumptions exchange_exact.
(* A typed all_to_all, and a typed all_gather, is at the lower bound: T (g - 1) / g and T (g - 1) where tiles nest. *)
Print Assumptions all_to_all_optimal.
Print Assumptions all_gather_optimal.
Print Assumptions all_to_all_closed.
Print Assumptions all_gather_closed.
(* c summands of n elements wanted, added up, on r devices: some device receives n (c + r - 2) / devices, whatever the
   messages hold; and a device that wants sums receives its whole tile. *)
Print Assumptions reduce_lower_bound.
Print Assumptions whole_tile.
(* c summands of n elements before, m after: some device receives n (c - m) / devices; n (c - k) / (2 devices) where each
   is wanted once and k stay for nothing; n (a + r - 2) / devices where one of a is wanted on r devices; and n r / devices
   where r devices want what they do not have. *)
Print Assumptions parts_lower_bound.
Print Assumptions once_lower_bound.
Print Assumptions joined_lower_bound.
Print Assumptions copies_lower_bound.
(* Each after is wanted on r devices, at most k of which hold a given one of what it is made of, k < r: some device
   receives n (c + r - k - 1) / devices.  The costs of several after do not add up. *)
Print Assumptions several_lower_bound.
Print Assumptions ring.
(* The lower bounds that the driver prints, without and with sums. *)
Print Assumptions move_bound_sound.
Print Assumptions reduce_bound_sound.
(* A plan whose certified number is the printed lower bound cannot be beaten on the busiest receiver. *)
Print Assumptions certified_optimal.
Print Assumptions certified_optimal_sum.
(* Between meshes: an accepted plan delivers the target on its own devices, and receives at most the certified number. *)
Print Assumptions check_between_sound.
(* ... no protocol among the devices of both meshes receives less than the printed bound, without and with sums ... *)
Print Assumptions between_bound_sound.
Print Assumptions between_sum_sound.
(* ... and a plan at it cannot be beaten on the busiest receiver. *)
Print Assumptions certified_between.
Print Assumptions certified_between_sum.
(* ... where one exchange is accepted and, without sums, at the bound. *)
Print Assumptions direct_exchange_between.
(* Devices numbered anew: one permute is accepted within one tile, and receives at most one ... *)
Print Assumptions renumber_accepted.
(* ... so that a plan of the other numbering is one of this, for as much; for nothing where no device's box changes. *)
Print Assumptions renumber_first.
Print Assumptions renumber_last.
Print Assumptions renamed_for_nothing.
(* A dimension as two: every device holds the same elements at the same places of a row-major tile ... *)
Print Assumptions view_split.
(* ... so that the same memory, read in the other shape, holds the same array. *)
Print Assumptions view_denotes.
(* Files: one array cut in one dimension on each side.  No program, with any memory, touches fewer granules than the
   printed bound, and one of enough memory touches no more. *)
Print Assumptions two_cuts_bound.
Print Assumptions bound_met.
(* ... but whoever touches each granule once holds a band of granules at some time. *)
Print Assumptions once_needs_a_band.
(* Prime atoms, sizes that divide: slice, exchange, gather stays in memory and receives at most the target tile ... *)
Print Assumptions three_stage.
(* ... which is within a factor of two of the best. *)
Print Assumptions optimum_ge_half.
Print Assumptions three_stage_2approx.
(* ... and without any exchange: slice, permutes and all_to_alls of equal tiles, gather. *)
Print Assumptions memory_bounded_existence.
(* ... where all atoms have one prime size (powers of two, say) with two permutes and one wide all_to_all. *)
Print Assumptions two_permutes.
(* Digests of pieces add to the digest of the whole, in any order; n replicas have n times the digest of one. *)
Print Assumptions digest_of_pieces.
Print Assumptions digest_any_order.
Print Assumptions digest_of_replicas.
(* A fault within one word is found under all keys. *)
Print Assumptions one_word_found.
(* Any other content has the same digest for at most |xs| + |ys| of |xs| |ys| pairs of keys. *)
Print Assumptions digest_finds.
(* Programs of tasks and moves.  The starts that the order gives exist exactly if the order fits one by one ... *)
Print Assumptions times_keep.
Print Assumptions fits_iff.
(* ... they are the least that keep the order, and they are valid: never above a limit at any time. *)
Print Assumptions times_least.
Print Assumptions times_valid.
(* A valid schedule loses nothing if its activities are ordered by their starts ... *)
Print Assumptions sorted_least.
(* ... but another order of its activities may be slower. *)
Print Assumptions later_frees.
(* Executions with any durations: never stuck, never above a limit, and all of them end. *)
Print Assumptions never_stuck.
Print Assumptions never_over.
Print Assumptions runs_end.
