(* Lower bounds where summands must be added up.  A device may know an element as far as summands have reached it: its
   own, and whatever the senders knew when they sent.  Nothing is assumed about what a message holds.
   reduce_lower_bound   c summands of each element wanted on r devices: some device receives n (c + r - 2) / devices
   whole_tile           a device that wants sums it does not have receives at least its whole target tile *)
From Coq Require Import List Arith Lia PeanoNat Permutation Bool.
Import ListNotations.
From Reshard Require Import Mesh Layout Step Meaning Simulate Received Protocol Schedule.

Section Knowledge.
Variables Dv El : Type.
Variable deq : forall a b : Dv, {a = b} + {a <> b}.
Variable eeq : forall a b : El, {a = b} + {a <> b}.
Notation transfer := (Protocol.transfer Dv El).
Notation from := (from Dv El).
Notation to := (to Dv El).
Notation what := (what Dv El).
(* the summands that have reached a device, for one element *)
Definition knowledge := Dv -> list nat.

Definition learn1 (e : El) (K : knowledge) (t : transfer) : knowledge :=
  fun d => if eeq (what t) e then if deq d (to t) then K d ++ K (from t) else K d else K d.
Definition learn (e : El) (K : knowledge) (ts : list transfer) : knowledge := fold_left (learn1 e) ts K.
Definition about (e : El) (ts : list transfer) : list transfer :=
  filter (fun t => if eeq (what t) e then true else false) ts.
Definition complete (c : nat) (k : list nat) : bool := forallb (fun s => existsb (Nat.eqb s) k) (seq 0 c).

Lemma complete_in c k : complete c k = true <-> forall s, s < c -> In s k.
Proof.
  unfold complete. rewrite forallb_forall. split.
  - intros H s Hs. apply existsb_In, H, in_seq. lia.
  - intros H s Hs. apply in_seq in Hs. apply existsb_In, H. lia.
Qed.

(* a device that receives nothing about e learns nothing about it *)
Lemma learn_receives e ts K d : ~ In d (map to (about e ts)) -> learn e K ts d = K d.
Proof.
  revert K; induction ts as [|t ts IH]; intros K N; auto. simpl in *. unfold learn in *. simpl.
  destruct (eeq (what t) e) as [E|E].
  - simpl in N. rewrite IH by tauto. unfold learn1. destruct (eeq (what t) e); auto.
    destruct (deq d (to t)); auto. subst. tauto.
  - rewrite IH by auto. unfold learn1. destruct (eeq (what t) e); auto. tauto.
Qed.

(* the knowledge of a device came from its own start or from the start of a sender *)
Lemma learn_origin e ts K d s : In s (learn e K ts d) ->
  In s (K d) \/ exists t, In t (about e ts) /\ In s (K (from t)).
Proof.
  revert K d; induction ts as [|t ts IH]; intros K d H; auto. unfold learn in H. simpl in H.
  destruct (IH _ _ H) as [H1|[u [H1 H2]]]; simpl; unfold learn1 in *; destruct (eeq (what t) e) as [E|E].
  - destruct (deq d (to t)); auto. apply in_app_iff in H1 as [H1|H1]; auto. right. exists t. simpl; auto.
  - auto.
  - right. destruct (deq (from u) (to t)).
    + apply in_app_iff in H2 as [H2|H2]; [exists u|exists t]; simpl; auto.
    + exists u; simpl; auto.
  - right. exists u; auto.
Qed.

Definition at_most_one (K : knowledge) : Prop := forall d, length (K d) <= 1.

Lemma complete_cost c e ts K d : at_most_one K -> complete c (learn e K ts d) = true -> c <= 1 + length (about e ts).
Proof.
  intros A C. rewrite complete_in in C.
  transitivity (length (K d ++ flat_map (fun t => K (from t)) (about e ts))).
  - rewrite <- (seq_length c 0) at 1. apply NoDup_incl_length; [apply seq_NoDup|].
    intros s Hs. apply in_seq in Hs. apply in_app_iff.
    destruct (learn_origin e ts K d s (C s ltac:(lia))) as [H|[t [H1 H2]]]; auto.
    right. apply in_flat_map. exists t; auto.
  - rewrite app_length. pose proof (A d).
    assert (length (flat_map (fun t => K (from t)) (about e ts)) <= length (about e ts)); [|lia].
    induction (about e ts) as [|t l IH]; simpl; auto. rewrite app_length. pose proof (A (from t)). lia.
Qed.

(* devices that become complete must receive *)
Lemma complete_receives c e ts K ds : NoDup ds ->
  (forall d, In d ds -> complete c (K d) = false /\ complete c (learn e K ts d) = true) -> length ds <= length (about
    e ts).
Proof.
  intros ND H. rewrite <- (map_length to (about e ts)). apply NoDup_incl_length; auto.
  intros d Hd. destruct (in_dec deq d (map to (about e ts))) as [I|I]; auto. exfalso.
  destruct (H d Hd) as [H1 H2]. rewrite learn_receives in H2 by auto. congruence.
Qed.

(* one element: until the first device is complete c - 1 transfers are needed, then one for each other device *)
Lemma element_cost c e ts K ds : 2 <= c -> at_most_one K -> NoDup ds -> ds <> [] ->
  (forall d, In d ds -> complete c (learn e K ts d) = true) -> c + length ds - 2 <= length (about e ts).
Proof.
  intros Hc A ND NE H.
  assert (N0 : forall d, In d ds -> complete c (K d) = false).
  { intros d _. destruct (complete c (K d)) eqn:E; auto. exfalso. rewrite complete_in in E. pose proof (A d).
    destruct (K d) as [|s [|s' k]]; simpl in H0; try lia.
    - apply (E 0); lia.
    - pose proof (E 0 ltac:(lia)) as [E0|[]]. pose proof (E 1 ltac:(lia)) as [E1|[]]. lia. }
  (* the transfer that completes the first device *)
  assert (SP : exists ts1 t ts2, ts = ts1 ++ t :: ts2 /\
    (forall d, In d ds -> complete c (learn e K ts1 d) = false) /\
    exists d, In d ds /\ complete c (learn e K (ts1 ++ [t]) d) = true).
  { assert (G : forall l2 l1, ts = l1 ++ l2 -> (forall d, In d ds -> complete c (learn e K l1 d) = false) ->
       exists ts1 t ts2, ts = ts1 ++ t :: ts2 /\ (forall d, In d ds -> complete c (learn e K ts1 d) = false) /\
       exists d, In d ds /\ complete c (learn e K (ts1 ++ [t]) d) = true).
    { induction l2 as [|t l2 IH]; intros l1 E NC.
      - rewrite app_nil_r in E. subst l1. destruct ds as [|d ds']; [congruence|].
        pose proof (H d (or_introl eq_refl)) as X.
        rewrite (NC d (or_introl eq_refl)) in X. discriminate.
      - destruct (existsb (fun d => complete c (learn e K (l1 ++ [t]) d)) ds) eqn:EX.
        + apply existsb_exists in EX as [d [I C]]. exists l1, t, l2. split; auto. split; auto. exists d; auto.
        + apply (IH (l1 ++ [t])). { rewrite <- app_assoc. exact E. }
          intros d I. destruct (complete c (learn e K (l1 ++ [t]) d)) eqn:C; auto. exfalso.
          rewrite <- not_true_iff_false in EX. apply EX. apply existsb_exists. exists d; auto. }
    apply (G ts []); auto. }
  destruct SP as [ts1 [t [ts2 [E [NC [d0 [I0 C0]]]]]]].
  pose proof (complete_cost c e (ts1 ++ [t]) K d0 A C0) as C1.
  assert (E2 : about e ts = about e (ts1 ++ [t]) ++ about e ts2).
  { rewrite E. unfold about. rewrite <- filter_app. rewrite <- app_assoc. reflexivity. }
  set (ds2 := filter (fun d => if deq d d0 then false else true) ds).
  assert (L2 : length ds <= 1 + length ds2).
  { transitivity (length (d0 :: ds2)); auto. apply NoDup_incl_length; auto. intros d I.
    destruct (deq d d0) as [->|N]; [simpl; auto|]. right. apply filter_In. split; auto. destruct (deq d d0); tauto. }
  assert (C2 : length ds2 <= length (about e ts2)).
  { apply (complete_receives c e ts2 (learn e K (ts1 ++ [t]))). { apply NoDup_filter; auto. }
    intros d I. apply filter_In in I as [I N]. split.
    - (* only the receiver of t can have changed, and that is d0 *)
      destruct (complete c (learn e K (ts1 ++ [t]) d)) eqn:C; auto. exfalso.
      pose proof (NC d I) as X. pose proof (NC d0 I0) as X0.
      assert (LT : learn e K (ts1 ++ [t]) = learn1 e (learn e K ts1) t)
        by (unfold learn; rewrite fold_left_app; reflexivity).
      rewrite LT in C, C0. unfold learn1 in C, C0.
      destruct (eeq (what t) e); [|congruence].
      destruct (deq d (to t)) as [Ed|]; [|congruence]. destruct (deq d0 (to t)) as [Ed0|]; [|congruence].
      rewrite Ed, <- Ed0 in N. destruct (deq d0 d0); [discriminate|tauto].
    - unfold learn. rewrite <- fold_left_app. rewrite <- app_assoc. simpl. rewrite <- E. apply (H d I). }
  rewrite E2, app_length. lia.
Qed.

Lemma about_sum es ts : NoDup es -> sumf (fun e => length (about e ts)) es <= length ts.
Proof.
  intros ND. induction ts as [|t ts IH]; simpl.
  - induction es; simpl; auto. inversion ND; auto.
  - assert (G : sumf (fun e => length (about e (t :: ts))) es <=
                sumf (fun e => length (about e ts)) es + (if in_dec eeq (what t) es then 1 else 0)); [|destruct
                  (in_dec eeq (what t) es); simpl in *; lia].
    clear IH. induction ND as [|e es N ND IH]; simpl; auto.
    simpl in IH. destruct (eeq (what t) e) as [E|E].
    + subst e. destruct (eeq (what t) (what t)); [|congruence]. simpl.
      destruct (in_dec eeq (what t) es); [tauto|]. lia.
    + destruct (eeq e (what t)) as [E'|E']; [congruence|].
      destruct (in_dec eeq (what t) es); lia.
Qed.
Lemma recv_sum ds ts : NoDup ds -> (forall t, In t ts -> In (to t) ds) ->
  length ts <= sumf (fun d => recv Dv El deq d ts) ds.
Proof.
  intros ND. induction ts as [|t ts IH]; intros H; simpl; [lia|].
  assert (G : sumf (fun d => recv Dv El deq d ts) ds + 1 <= sumf (fun d => recv Dv El deq d (t :: ts)) ds).
  { assert (I : In (to t) ds) by (apply H; simpl; auto). clear - I. induction ds as [|d ds IH]; [destruct I|]. simpl.
    assert (M : forall l, sumf (fun d => recv Dv El deq d ts) l <= sumf (fun d => recv Dv El deq d (t :: ts)) l).
    { intros l. apply sumf_le. intros a _. unfold recv. simpl. destruct (deq (to t) a); simpl; lia. }
    specialize (M ds). destruct I as [->|I].
    - unfold recv at 3. simpl. destruct (deq (to t) (to t)); [|congruence]. simpl. unfold recv at 1. lia.
    - specialize (IH I). unfold recv at 3. simpl. destruct (deq (to t) d); simpl; unfold recv at 1; lia. }
  specialize (IH (fun u I => H u (or_intror I))). lia.
Qed.

(* Each of n elements has c >= 2 summands, each known to nobody but as one summand a device, and is wanted, added up, on
   r devices: some device receives at least n (c + r - 2) / devices. *)
Theorem reduce_lower_bound c r ds es ts (K : El -> knowledge) : 2 <= c -> 1 <= r -> NoDup ds -> NoDup es ->
  (forall t, In t ts -> In (to t) ds) -> (forall e, at_most_one (K e)) ->
  (forall e, In e es -> exists ws, NoDup ws /\ length ws = r /\
    forall d, In d ws -> complete c (learn e (K e) ts d) = true) ->
  ds <> [] -> exists d, In d ds /\ length es * (c + r - 2) <= length ds * recv Dv El deq d ts.
Proof.
  intros Hc Hr ND NE HT A W NN.
  assert (S1 : length es * (c + r - 2) <= length ts).
  { etransitivity; [|apply (about_sum es); auto]. rewrite <- sumf_const. apply sumf_le. intros e He.
    destruct (W e He) as [ws [N1 [L1 C1]]]. rewrite <- L1.
    apply (element_cost c e ts (K e) ws); auto. intros ->. simpl in L1. lia. }
  pose proof (recv_sum ds ts ND HT) as S2.
  (* the largest term is at least the mean *)
  assert (MX : exists d, In d ds /\ sumf (fun d => recv Dv El deq d ts) ds <= length ds * recv Dv El deq d ts).
  { clear - NN. induction ds as [|d [|d' ds] IH]; [congruence| |].
    - exists d. simpl. split; [auto|lia].
    - destruct IH as [x [I L]]; [congruence|].
      destruct (Nat.le_gt_cases (recv Dv El deq x ts) (recv Dv El deq d ts)).
      + exists d. split; [simpl; auto|]. cbn [sumf length] in *. nia.
      + exists x. split; [simpl in *; auto|]. cbn [sumf length] in *. nia. }
  destruct MX as [d [I L]]. exists d. split; auto. lia.
Qed.

(* ... and a device receives at least once for every element whose sum it wants. *)
Theorem whole_tile c es ts (K : El -> knowledge) d : 2 <= c -> NoDup es -> (forall e, at_most_one (K e)) ->
  (forall e, In e es -> complete c (learn e (K e) ts d) = true) -> length es <= recv Dv El deq d ts.
Proof.
  intros Hc ND A W. unfold recv. rewrite <- (map_length what (filter _ ts)).
  apply NoDup_incl_length; auto. intros e He. specialize (W e He).
  destruct (in_dec deq d (map to (about e ts))) as [I|I].
  - apply in_map_iff in I as [t [E I]]. apply filter_In in I as [I1 I2]. apply in_map_iff. exists t.
    destruct (eeq (what t) e); [|discriminate]. split; auto. apply filter_In. split; auto.
    destruct (deq (to t) d); auto.
  - exfalso. rewrite learn_receives in W by auto. rewrite complete_in in W. pose proof (A e d) as B.
    destruct (K e d) as [|s [|s' k]]; simpl in B; try lia.
    + apply (W 0); lia.
    + pose proof (W 0 ltac:(lia)) as [E0|[]]. pose proof (W 1 ltac:(lia)) as [E1|[]]. lia.
Qed.
End Knowledge.
