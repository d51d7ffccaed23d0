(* The checker as OCaml.  Numbers become machine integers: driver.ml refuses inputs that could overflow them. *)
From Coq Require Import Extraction ExtrOcamlBasic ExtrOcamlNatInt.
From Coq Require Import Arith List.
From Reshard Require Import Mesh Layout Step Received Check Certify Schedule Boxes Between BetweenBound.

(* The library's division counts down in unary. *)
Extract Constant Nat.div => "(fun a b -> if b = 0 then 0 else a / b)".
Extract Constant Nat.modulo => "(fun a b -> if b = 0 then a else a mod b)".
Extract Constant Nat.min => "(fun (a:int) b -> if a < b then a else b)".
Extract Constant Nat.max => "(fun (a:int) b -> if a < b then b else a)".
Extraction "checker.ml" check_plan lower_bound check_between bound_between
  tile_elements certified check_schedules devices check_boxes received_elements.
