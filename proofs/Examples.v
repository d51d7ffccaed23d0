(* The checker says yes and no where it should: the theorems are not vacuous. *)
From Coq Require Import List Bool.
Import ListNotations.
From Reshard Require Import Mesh Layout Step Received Check Certify.

(* mesh 2x3x2, atoms 0 1 2; an array of 12 x 12, or of 7 *)
Definition m0 : mesh := [2; 3; 2].
Definition lay (a b u : list nat) : layout := Layout m0 [Dim 12 a; Dim 12 b] u.
Definition line (a u : list nat) : layout := Layout [2; 2] [Dim 7 a] u.
Definition accepts (L L' : layout) (p : list step) (b : nat) : option (nat * nat) :=
  match check_plan (Plan L L' p) (Some b) with Accept v => Some (peak v, received_total v) | Reject _ => None end.

Example portable : accepts (lay [0; 1] [] []) (lay [1] [2] [])
  [(permute, lay [1; 0] [] []); (all_to_all, lay [1] [0] []); (permute, lay [1] [2] [])] 24 = Some (24, 60).
Proof. reflexivity. Qed.
Example direct : accepts (lay [0; 1] [] []) (lay [1] [2] []) [(exchange, lay [1] [2] [])] 24 = Some (24, 24).
Proof. reflexivity. Qed.
Example over_the_bound : accepts (lay [0; 1] [] []) (lay [1] [2] []) [(exchange, lay [1] [2] [])] 23 = None.
Proof. reflexivity. Qed.
Example wide_all_to_all : accepts (lay [0; 1; 2] [] []) (lay [] [2; 0; 1] []) [(all_to_all, lay [] [2; 0; 1] [])] 12
  = Some (12, 11).
Proof. reflexivity. Qed.
Example gather_a_major_atom : accepts (lay [0; 1] [] []) (lay [1] [] []) [(all_gather, lay [1] [] [])] 144 = None.
Proof. reflexivity. Qed.
Example atom_used_twice : accepts (lay [0] [] []) (lay [0] [0] []) [(slice, lay [0] [0] [])] 144 = None.
Proof. reflexivity. Qed.
Example reduce_two_ways :
  accepts (lay [1] [] [0; 2]) (lay [1; 2] [0] []) [(reduce_scatter, lay [1; 2] [0] [])] 48 = Some (48, 36) /\
  accepts (lay [1] [] [0; 2]) (lay [1] [] []) [(all_reduce, lay [1] [] [])] 48 = Some (48, 72).
Proof. split; reflexivity. Qed.
Example fill : accepts (lay [1; 0] [] []) (lay [1] [] [0; 2]) [(zero_fill, lay [1] [] [0; 2])] 48 = Some (48, 0).
Proof. reflexivity. Qed.
Example lost_summand : accepts (lay [] [] [0]) (lay [] [] []) [(exchange, lay [] [] [])] 144 = None.
Proof. reflexivity. Qed.
(* 7 over 4 devices: 2 2 2 1.  The pair boundaries 4 3 nest in them, and so does the whole, which the third device lacks
   all but one of.  5 over 4 devices: 2 2 1 0; the pair boundaries 3 2 do not nest. *)
Definition line5 (a : list nat) : layout := Layout [2; 2] [Dim 5 a] [].
Example uneven :
  accepts (line [0; 1] []) (line [] []) [(all_gather, line [0] []); (all_gather, line [] [])] 7 = Some (7, 6) /\
  accepts (line5 [0; 1]) (line5 [0]) [(all_gather, line5 [0])] 7 = None /\
  accepts (line5 [0; 1]) (line5 [0]) [(exchange, line5 [0])] 7 = Some (3, 2).
Proof. repeat split; reflexivity. Qed.
Example other_mesh :
  let a := Layout [2; 3] [Dim 6 [0]] [] in let b := Layout [3; 2] [Dim 6 [0]] [] in
  check_plan (Plan a b [(exchange, b)]) None = Accept (Verdict 3 2) /\
  check_plan (Plan a b [(all_gather, b)]) None = Reject (not_typed 1).
Proof. split; reflexivity. Qed.

Example bounds :
  lower_bound (lay [0; 1] [] []) (lay [1] [2] []) = Some 24 /\          (* the lists part ways: the whole tile *)
  lower_bound (lay [0; 1; 2] [] []) (lay [] [2; 0; 1] []) = Some 11 /\
  lower_bound (lay [0; 1] [] []) (lay [0] [] []) = Some 48 /\           (* prefixes: the missing part *)
  lower_bound (line [0; 1] []) (line [0] []) = Some 2 /\
  lower_bound (lay [1] [] [0; 2]) (lay [1] [] []) = Some 72 /\          (* an all_reduce is optimal *)
  lower_bound (lay [] [] []) (lay [] [] [0]) = None.
Proof. repeat split; reflexivity. Qed.
