(* Schedules: a step as boxes that travel between ranks.  The judge looks only at tiles, summands and boxes.
   check_schedules      every send has its receive; every element of every target tile is written once (once per
                        summand where they are added), from a rank that holds it
   schedules_sound      running schedules that pass does what the step means *)
From Coq Require Import List Arith Lia PeanoNat Permutation Bool.
Import ListNotations.
From Reshard Require Import Mesh Layout Step Meaning Simulate Received.

(* half-open intervals in global indices *)
Definition area := list (nat * nat).
Record transfer := Transfer { peer : dev; region : area }.
Record schedule := Schedule { sends : list transfer; receives : list transfer; fills : list area }.

Definition inside_area (b : area) (g : idx) : bool :=
  forall2b (fun p q => (fst p <=? fst q) && (fst q <? snd p)) b (map (fun i => (i, i)) g).
Definition contains (outer inner : area) : bool :=
  forall2b (fun p q => (fst p <=? fst q) && (snd q <=? snd p)) outer inner.
Fixpoint disjoint (b c : area) : bool :=
  match b, c with p :: b, q :: c => (snd p <=? fst q) || (snd q <=? fst p) || disjoint b c | _, _ => false end.
Fixpoint volume (b : area) : nat := match b with [] => 1 | p :: b => (snd p - fst p) * volume b end.
Fixpoint apart (bs : list area) : bool :=
  match bs with [] => true | b :: r => forallb (disjoint b) r && apart r end.
(* The boxes, all inside the whole, cover it and each element once. *)
Definition partitions (whole : area) (bs : list area) : bool :=
  forallb (contains whole) bs && apart bs && (sumf volume bs =? volume whole).

Definition tile_area (m : mesh) (t : list dim) (x : dev) : area :=
  map (fun d => let lo := Nat.min (extent d) (ev m (atoms d) x * tile_extent m d) in
                (lo, Nat.min (extent d) ((ev m (atoms d) x + 1) * tile_extent m d))) t.
Definition is_device (m : mesh) (x : dev) : bool := forall2b (fun d s => d <? s) x m.

Definition adds (k : kind) : bool := match k with reduce_scatter | all_reduce => true | _ => false end.
(* x keeps its values in a zero_fill: it is the first of the devices that had the same tile *)
Definition keeps (L L' : layout) (x : dev) : bool :=
  ev (mesh_of L) (minus (added L L') (used (dims L))) x =? 0.

Definition sender_ok (k : kind) (L L' : layout) (x : dev) (r : transfer) : bool :=
  is_device (mesh_of L) (peer r) && contains (tile_area (mesh_of L) (dims L) (peer r)) (region r) &&
  match k with
  | zero_fill => same_list (peer r) x
  | reduce_scatter | all_reduce =>
      ev (mesh_of L) (unreduced L') (peer r) =? ev (mesh_of L) (unreduced L') x
  | _ => ev (mesh_of L) (unreduced L) (peer r) =? ev (mesh_of L') (unreduced L') x
  end.

Definition regions_from (L L' : layout) (w : nat) (rs : list transfer) : list area :=
  map region (filter (fun r => ev (mesh_of L) (reduced L L') (peer r) =? w) rs).

Definition covers (k : kind) (L L' : layout) (x : dev) (s : schedule) : bool :=
  let whole := tile_area (mesh_of L') (dims L') x in
  match k with
  | zero_fill =>
      partitions whole (fills s) &&
      (if keeps L L' x then partitions (tile_area (mesh_of L) (dims L) x) (map region (receives s))
       else match receives s with [] => true | _ => false end)
  | reduce_scatter | all_reduce =>
      forallb (fun w => partitions whole (regions_from L L' w (receives s))) (seq 0 (group_size L L'))
  | _ => partitions whole (map region (receives s))
  end.

Definition schedule_ok (k : kind) (L L' : layout) (x : dev) (s : schedule) : bool :=
  forallb (sender_ok k L L' x) (receives s) && covers k L L' x s &&
  match k with zero_fill => true | _ => match fills s with [] => true | _ => false end end.

(* y sends to x the boxes that x receives from y, in the same order. *)
Definition same_areas (b c : list area) : bool :=
  forall2b (forall2b (fun p q => (fst p =? fst q) && (snd p =? snd q))) b c.
Definition between (y : dev) (ts : list transfer) : list area :=
  map region (filter (fun r => same_list (peer r) y) ts).
Definition pairs_ok (m : mesh) (ss : list (dev * schedule)) : bool :=
  forallb (fun xs => forallb (fun ys =>
    same_list (fst xs) (fst ys) || same_areas (between (fst ys) (sends (snd xs))) (between (fst xs) (receives (snd
      ys))))
    ss) ss
  && forallb (fun xs => forallb (fun r => is_device m (peer r) && negb (same_list (peer r) (fst xs))) (sends (snd
    xs))) ss.

Definition check_schedules (L : layout) (k : kind) (L' : layout) (ss : list schedule) : bool :=
  let xss := combine (devices (mesh_of L')) ss in
  layout_ok L && type_step L k L' && (length ss =? length (devices (mesh_of L'))) &&
  forallb (fun xs => schedule_ok k L L' (fst xs) (snd xs)) xss &&
  (negb (same_mesh L L') || pairs_ok (mesh_of L') xss).

(* Running them.  The fill stays if nothing is received. *)
Fixpoint schedule_of (xss : list (dev * schedule)) (x : dev) : schedule :=
  match xss with
  | [] => Schedule [] [] []
  | (y, s) :: r => if same_list y x then s else schedule_of r x
  end.
Definition run_schedules {V} (M : monoid V) (L L' : layout) (ss : list schedule) (S : state V) : state V :=
  fun x l =>
    let g := gidx (mesh_of L') (dims L') x l in
    fold_right (add M) (zero M)
      (map (fun r => S (peer r) (rem (mesh_of L) (dims L) g))
        (filter (fun r => inside_area (region r) g)
          (receives (schedule_of (combine (devices (mesh_of L')) ss) x)))).

(* boxes as lists of points *)
Fixpoint points (b : area) : list idx :=
  match b with [] => [[]] | p :: b => flat_map (fun i => map (cons i) (points b)) (seq (fst p) (snd p - fst p)) end.

Lemma in_points b g : In g (points b) <-> inside_area b g = true.
Proof.
  unfold inside_area. revert g; induction b as [|p b IH]; intros g; simpl.
  - split. { intros [<-|[]]. auto. } destruct g; simpl; auto. discriminate.
  - rewrite in_flat_map. destruct g as [|i g]; simpl.
    + split; [|discriminate]. intros [i [_ I]]. apply in_map_iff in I as [k [H _]]. discriminate.
    + rewrite !andb_true_iff, <- IH, Nat.leb_le, Nat.ltb_lt. split.
      * intros [j [I1 I2]]. apply in_map_iff in I2 as [k [H I2]]. injection H as <- <-. apply in_seq in I1.
        split; [lia|auto].
      * intros [H1 H2]. exists i. split. { apply in_seq; lia. } apply in_map; auto.
Qed.
Lemma nodup_points b : NoDup (points b).
Proof.
  induction b as [|p b IH]; simpl. { repeat constructor; auto. }
  set (f := fun i => map (cons i) (points b)). enough (F : forall n s, NoDup (flat_map f (seq s n))) by apply F.
  induction n; intros s; simpl. { constructor. }
  apply nodup_app_intro; auto.
  - apply FinFun.Injective_map_NoDup; auto. intros a c E; inversion E; auto.
  - intros l H1 H2. apply in_map_iff in H1 as [k [<- _]].
    apply in_flat_map in H2 as [i [I1 I2]]. apply in_seq in I1.
    apply in_map_iff in I2 as [k' [E _]]. inversion E. lia.
Qed.
Lemma points_length b : length (points b) = volume b.
Proof.
  induction b as [|p b IH]; simpl; auto. rewrite <- IH.
  set (f := fun i => map (cons i) (points b)).
  enough (F : forall n s, length (flat_map f (seq s n)) = n * length (points b)) by apply F.
  induction n; intros s; simpl; auto. rewrite app_length, IHn. unfold f. rewrite map_length. auto.
Qed.
Lemma contains_inside b c g : contains b c = true -> inside_area c g = true -> inside_area b g = true.
Proof.
  unfold contains, inside_area. revert b g; induction c as [|q c IH]; destruct b as [|p b], g as [|i g]; simpl;
    intros H1 H2; auto; try discriminate.
  rewrite !andb_true_iff, !Nat.leb_le, ?Nat.ltb_lt in *. destruct H1 as [H1 H3], H2 as [H2 H4].
  split; [lia|]. apply IH; auto.
Qed.
Lemma disjoint_inside b c g : disjoint b c = true -> inside_area b g = true -> inside_area c g = true -> False.
Proof.
  unfold inside_area. revert c g; induction b as [|p b IH]; destruct c as [|q c], g as [|i g]; simpl;
    intros H1 H2 H3; try discriminate.
  rewrite !orb_true_iff, !andb_true_iff, !Nat.leb_le, ?Nat.ltb_lt in *.
  destruct H1 as [H1|H1]; [lia|]. apply (IH c g H1); tauto.
Qed.

Lemma apart_once bs g : apart bs = true -> length (filter (fun b => inside_area b g) bs) <= 1.
Proof.
  induction bs as [|b bs IH]; simpl; intros H; auto. apply andb_true_iff in H as [H1 H2].
  destruct (inside_area b g) eqn:E; auto. simpl. rewrite filter_none; auto.
  intros c Hc. destruct (inside_area c g) eqn:F; auto. exfalso.
  rewrite forallb_forall in H1. eapply disjoint_inside; eauto.
Qed.

(* Boxes that partition a whole hold each of its elements once, and no other. *)
Lemma partitions_once whole bs g : partitions whole bs = true ->
  length (filter (fun b => inside_area b g) bs) = if inside_area whole g then 1 else 0.
Proof.
  unfold partitions. rewrite !andb_true_iff, forallb_forall, Nat.eqb_eq. intros [[C A] Vo].
  destruct (inside_area whole g) eqn:W.
  - pose proof (apart_once bs g A).
    assert (I : In g (concat (map points bs))).
    { assert (ND : NoDup (concat (map points bs))).
      { clear C Vo. induction bs as [|b bs IH]; simpl in *. { constructor. } apply andb_true_iff in A as [A1 A2].
        apply nodup_app_intro; auto using nodup_points.
        - apply IH; auto. apply apart_once; auto.
        - intros h H1 H2. apply in_concat in H2 as [ps [H2 H3]]. apply in_map_iff in H2 as [c [<- H2]].
          rewrite forallb_forall in A1. apply in_points in H1, H3. eapply disjoint_inside; eauto. }
      assert (IN : incl (concat (map points bs)) (points whole)).
      { intros h H1. apply in_concat in H1 as [ps [H1 H2]]. apply in_map_iff in H1 as [c [<- H1]].
        apply in_points in H2. apply in_points. eapply contains_inside; eauto. }
      assert (LE : length (concat (map points bs)) = sumf volume bs).
      { clear. induction bs; simpl; auto. rewrite app_length, points_length, IHbs. auto. }
      assert (LL : length (points whole) <= length (concat (map points bs))) by (rewrite LE, points_length; lia).
      apply (NoDup_length_incl ND LL IN). apply in_points; auto. }
    apply in_concat in I as [ps [I1 I2]]. apply in_map_iff in I1 as [b [<- I1]]. apply in_points in I2.
    assert (In b (filter (fun b => inside_area b g) bs)) by (apply filter_In; auto).
    destruct (filter _ bs); simpl in *; [tauto|lia].
  - rewrite filter_none; auto. intros b Hb. destruct (inside_area b g) eqn:E; auto.
    rewrite (contains_inside whole b g) in W; auto.
Qed.

(* the tile as a box *)
Lemma tile_area_holds m t x g : mesh_ok m = true -> valid m x ->
  inside_area (tile_area m t x) g = true <-> holds m t x g.
Proof.
  intros Hm Hx. unfold inside_area, tile_area, holds, in_shape.
  revert g; induction t as [|d t IH]; destruct g as [|i g]; simpl; try (split; [discriminate|intros [[H _] _];
    discriminate]).
  - split; auto. intros _. repeat split; auto. simpl; lia.
  - rewrite !andb_true_iff, IH, Nat.leb_le, Nat.ltb_lt.
    pose proof (tile_covers m d Hm) as TC.
    assert (Q : extent d <> 0 -> 0 < tile_extent m d) by (intros; unfold shard_count in TC; nia).
    set (c := tile_extent m d) in *. set (k := ev m (atoms d) x) in *.
    split.
    + intros [H1 [[H2 H3] H4]]. assert (C : 0 < c) by (apply Q; lia).
      assert (E : i / c = k).
      { symmetry. apply Nat.div_unique with (i - c * k); nia. }
      split; [split; [lia|]|rewrite H4, E; auto].
      intros [|n] Hn; unfold dim_at; simpl; [lia|]. apply H3; lia.
    + intros [[H1 H2] H3]. injection H3 as H3 H4. assert (B : i < extent d) by (apply (H2 0); lia).
      assert (C : 0 < c) by (apply Q; lia).
      pose proof (Nat.div_mod i c ltac:(lia)). pose proof (Nat.mod_upper_bound i c ltac:(lia)).
      split; [nia|]. split; auto. split; [lia|]. intros n Hn. apply (H2 (S n)); lia.
Qed.

Lemma is_device_valid m x : is_device m x = true <-> valid m x.
Proof.
  rewrite <- device_valid. unfold devices, is_device. rewrite in_box. revert m; induction x as [|i x IH]; destruct m
    as [|s m];
    simpl; try (split; [discriminate|intros [H _]; discriminate]).
  - split; auto. intros _. split; auto. intros; lia.
  - rewrite andb_true_iff, IH, Nat.ltb_lt. split.
    + intros [H1 [H2 H3]]. split; [lia|]. intros [|n] Hn; auto. apply H3; lia.
    + intros [H1 H2]. split; [apply (H2 0); lia|]. split; [lia|]. intros n Hn. apply (H2 (S n)); lia.
Qed.

Lemma schedule_of_in xs ss x : length xs = length ss -> In x xs ->
  In (x, schedule_of (combine xs ss) x) (combine xs ss).
Proof.
  revert ss; induction xs as [|y xs IH]; destruct ss as [|s ss]; simpl; intros HL I; try lia; auto.
  destruct (same_list y x) eqn:E.
  - apply same_list_ok in E. subst; auto.
  - destruct I as [->|I]; [|auto]. rewrite (proj2 (same_list_ok x x) eq_refl) in E. discriminate.
Qed.

Lemma check_schedules_inv L k L' ss x : check_schedules L k L' ss = true -> valid (mesh_of L') x ->
  layout_ok L = true /\ type_step L k L' = true /\
  schedule_ok k L L' x (schedule_of (combine (devices (mesh_of L')) ss) x) = true.
Proof.
  unfold check_schedules. rewrite !andb_true_iff, forallb_forall, Nat.eqb_eq. intros [[[[H1 H2] H3] H4] _] Hx.
  split; auto. split; auto. apply device_valid in Hx. apply (H4 _ (schedule_of_in _ ss x (eq_sym H3) Hx)).
Qed.

Lemma filter_region rs g : length (filter (fun r => inside_area (region r) g) rs) =
  length (filter (fun b => inside_area b g) (map region rs)).
Proof. rewrite filter_map_length. auto. Qed.

Section Sound.
Context {V : Type} (M : monoid V).

Lemma one_value {A} (f : A -> V) l : length l = 1 -> exists a, l = [a] /\ fold_right (add M) (zero M) (map f l) = f a.
Proof.
  destruct l as [|a [|b l]]; simpl; intros H; try lia. exists a. split; auto. rewrite add_comm, add_zero. auto.
Qed.

Theorem schedules_sound L k L' ss (G : idx -> V) (S : state V) : check_schedules L k L' ss = true ->
  represents M L G S -> represents M L' G (run_schedules M L L' ss S).
Proof.
  intros C [A [D HT]].
  assert (C0 : layout_ok L = true /\ type_step L k L' = true).
  { unfold check_schedules in C. rewrite !andb_true_iff in C. tauto. }
  destruct C0 as [OK T]. pose proof (type_step_inv _ _ _ T) as [OK' [SH P]].
  pose proof OK as OKi. apply layout_ok_iff in OKi as [Hm W].
  pose proof OK' as OKi. apply layout_ok_iff in OKi as [Hm' W'].
  assert (Copy : adds k = false -> k <> zero_fill -> summand_count L = summand_count L' ->
                 represents M L' G (run_schedules M L L' ss S)).
  { intros NA NZ SU. exists A. split.
    - intros x l Hx Hl. destruct (check_schedules_inv _ _ _ _ _ C Hx) as [_ [_ OKs]].
      destruct (tile_holds _ _ _ _ Hl) as [Hh _]. unfold run_schedules. cbv zeta.
      set (g := gidx (mesh_of L') (dims L') x l) in *.
      set (s := schedule_of (combine (devices (mesh_of L')) ss) x) in *.
      unfold schedule_ok in OKs. rewrite !andb_true_iff, forallb_forall in OKs. destruct OKs as [[SO CO] _].
      assert (PT : partitions (tile_area (mesh_of L') (dims L') x) (map region (receives s)) = true).
      { destruct k; try discriminate; auto; congruence. }
      pose proof (partitions_once _ _ g PT) as ON. rewrite <- filter_region in ON.
      rewrite (proj2 (tile_area_holds _ _ _ _ Hm' Hx) Hh) in ON.
      destruct (one_value (fun r => S (peer r) (rem (mesh_of L) (dims L) g)) _ ON) as [r [ER ->]].
      assert (IR : In r (filter (fun r => inside_area (region r) g) (receives s))) by (rewrite ER; simpl; auto).
      apply filter_In in IR as [IR1 IR2]. specialize (SO r IR1). unfold sender_ok in SO.
      rewrite !andb_true_iff in SO. destruct SO as [[S1 S2] S3]. apply is_device_valid in S1.
      assert (EV : ev (mesh_of L) (unreduced L) (peer r) = ev (mesh_of L') (unreduced L') x).
      { destruct k; try discriminate; try congruence; apply Nat.eqb_eq; auto. }
      rewrite (denotes_holds L A S _ g OK D S1), EV; auto.
      apply tile_area_holds; auto. eapply contains_inside; eauto.
    - intros g Hg. unfold total. rewrite <- SU. apply HT. eapply in_shape_same; eauto using same_shape_sym. }
  assert (Same : same_mesh L L' && same_unreduced L L' = true -> summand_count L = summand_count L').
  { rewrite andb_true_iff, same_mesh_ok, same_unreduced_ok. unfold summand_count. intros [-> ->]; auto. }
  assert (Add : adds k = true -> mesh_of L = mesh_of L' -> (forall a, In a (unreduced L') -> In a (unreduced L)) ->
                 represents M L' G (run_schedules M L L' ss S)).
  { intros AK E U. exists (reduced_family M L L' A).
    destruct (wf_unreduced _ W) as [ND [HL HD]]. destruct (wf_unreduced _ W') as [ND' [HL' _]]. split.
    - intros x l Hx Hl. destruct (check_schedules_inv _ _ _ _ _ C Hx) as [_ [_ OKs]].
      destruct (tile_holds _ _ _ _ Hl) as [Hh _]. unfold run_schedules. cbv zeta.
      rewrite <- E in *.
      set (g := gidx (mesh_of L) (dims L') x l) in *. set (m := mesh_of L) in *.
      set (s := schedule_of (combine (devices m) ss) x) in *.
      unfold schedule_ok in OKs. rewrite !andb_true_iff, forallb_forall in OKs. destruct OKs as [[SO CO] _].
      set (n := group_size L L'). set (R := reduced L L').
      set (key := fun r => ev m R (peer r)).
      set (value := fun w => A (ev m (unreduced L) (setd m R w (setd m (unreduced L') (ev m (unreduced L') x)
        (zero_dev m)))) g).
      set (rs := filter (fun r => inside_area (region r) g) (receives s)).
      assert (SV : forall r, In r rs -> S (peer r) (rem m (dims L) g) = value (key r) /\ key r < n).
      { intros r Hr. apply filter_In in Hr as [IR1 IR2]. specialize (SO r IR1). unfold sender_ok in SO.
        rewrite !andb_true_iff in SO. destruct SO as [[S1 S2] S3]. apply is_device_valid in S1. fold m in S1, S2, S3.
        split; [|apply ev_lt; auto].
        assert (EV : ev m (unreduced L') (peer r) = ev m (unreduced L') x).
        { destruct k; try discriminate; apply Nat.eqb_eq; auto. }
        assert (HP : holds m (dims L) (peer r) g).
        { apply tile_area_holds; auto. eapply contains_inside; eauto. }
        pose proof (denotes_holds L A S (peer r) g OK D S1 HP) as DH. fold m in DH. rewrite DH.
        unfold value. f_equal. apply ev_ext. intros a Ha.
        pose proof (zero_valid m Hm) as Z.
        destruct (in_dec Nat.eq_dec a R) as [I|I].
        - assert (Vz : valid m (setd m (unreduced L') (ev m (unreduced L') x) (zero_dev m)))
            by (apply setd_valid; auto; apply ev_lt; auto).
          apply (ev_inj m R); auto. { apply setd_valid; auto. apply ev_lt; auto. }
          rewrite ev_setd; auto. { apply nodup_minus; auto. } 2: { apply ev_lt; auto. }
          intros b Hb. apply in_minus in Hb. rewrite (proj1 Vz). apply HL; tauto.
        - rewrite setd_other by auto.
          assert (I' : In a (unreduced L')).
          { destruct (in_dec Nat.eq_dec a (unreduced L')); auto. exfalso. apply I. apply in_minus; auto. }
          apply (ev_inj m (unreduced L')); auto.
          + apply setd_valid; auto. apply ev_lt; auto.
          + rewrite ev_setd; auto. { intros b Hb. rewrite (proj1 Z); auto. } apply ev_lt; auto. }
      rewrite (map_ext_in _ (fun r => value (key r))) by (intros r Hr; apply SV; auto).
      rewrite <- (map_map key value).
      unfold reduced_family. fold m R. change (prodsz m R) with n. unfold sumd. fold m R n.
      rewrite sumn_list. fold value.
      apply sum_list_perm, Permutation_map.
      apply (Permutation_count_occ Nat.eq_dec). intros w.
      assert (CK : count_occ Nat.eq_dec (map key rs) w = length (filter (fun r => key r =? w) rs)).
      { clear. induction rs as [|r rs IH]; simpl; auto.
        destruct (Nat.eq_dec (key r) w) as [Ew|Nw].
        - rewrite Ew, Nat.eqb_refl. simpl. auto.
        - rewrite (proj2 (Nat.eqb_neq _ _) Nw). auto. }
      rewrite CK. destruct (Nat.lt_ge_cases w n) as [Lw|Lw].
      + assert (CO' : partitions (tile_area m (dims L') x) (regions_from L L' w (receives s)) = true).
        { destruct k; try discriminate; simpl in CO; rewrite <- E in CO; rewrite forallb_forall in CO;
            apply CO, in_seq; change (group_size L L') with n; lia. }
        pose proof (partitions_once _ _ g CO') as ON. unfold regions_from in ON. rewrite <- filter_region in ON.
        rewrite (proj2 (tile_area_holds _ _ _ _ Hm Hx) Hh) in ON.
        unfold rs. rewrite filter_filter. rewrite filter_filter in ON.
        rewrite (filter_ext _ (fun a => (ev (mesh_of L) (reduced L L') (peer a) =? w) && inside_area (region a) g)).
        2: { intros r. apply andb_comm. }
        rewrite ON. symmetry. apply (proj1 (NoDup_count_occ' Nat.eq_dec (seq 0 n)) (seq_NoDup n 0)).
        apply in_seq. lia.
      + rewrite filter_none. 2: { intros r Hr. apply Nat.eqb_neq. destruct (SV r Hr) as [_ SK]. lia. }
        symmetry. apply count_occ_not_In. rewrite in_seq. change (prodsz m R) with n. lia.
    - intros g Hg. rewrite reduced_total; auto. apply HT. eapply in_shape_same; eauto using same_shape_sym. }
  pose proof P as P0.
  destruct k; simpl in P; rewrite ?andb_true_iff, ?same_mesh_ok, ?subset_ok in P.
  - apply Copy; auto; try discriminate. apply Same. rewrite andb_true_iff, same_mesh_ok. tauto.
  - apply Copy; auto; try discriminate. apply Same. rewrite andb_true_iff, same_mesh_ok. tauto.
  - apply Copy; auto; try discriminate. apply Same. rewrite andb_true_iff, same_mesh_ok. tauto.
  - apply Copy; auto; try discriminate. destruct P as [E [P _]].
    apply Nat.eqb_eq in P. unfold shard_count in P; simpl in P. unfold summand_count. rewrite <- E. exact P.
  - apply Add; tauto.
  - apply Add; tauto.
  - (* zero_fill: the schedule and the step keep the same elements *)
    destruct (step_sound M L zero_fill L' G S OK T (ex_intro _ A (conj D HT))) as [A' [D' HT']].
    destruct P as [[[E U] P] N].
    exists A'. split; auto. intros x l Hx Hl. rewrite <- (D' x l Hx Hl).
    destruct (check_schedules_inv _ _ _ _ _ C Hx) as [_ [_ OKs]].
    destruct (tile_holds _ _ _ _ Hl) as [Hh _]. unfold run_schedules, exec. cbv zeta. rewrite <- E in *.
    set (m := mesh_of L) in *. set (g := gidx m (dims L') x l) in *.
    set (s := schedule_of (combine (devices m) ss) x) in *.
    unfold schedule_ok in OKs. rewrite !andb_true_iff, forallb_forall in OKs. destruct OKs as [[SO CO] _].
    simpl in CO. apply andb_true_iff in CO as [_ CO].
    assert (KH : ev m (added L L') x = keeper L L' g <-> keeps L L' x = true /\ holds m (dims L) x g).
    { unfold keeps. rewrite Nat.eqb_eq. fold m. set (Z := minus (added L L') (used (dims L))).
      pose proof (in_shape_same _ _ _ (same_shape_sym _ _ SH) (proj1 Hh)) as Hs.
      pose proof (zero_valid m Hm) as Zv.
      destruct (setdims_holds m (dims L) (zero_dev m) g Hm (wf_tail _ _ _ W) Zv Hs) as [Vy Hy].
      set (y := setdims m (dims L) (quot m (dims L) g) (zero_dev m)) in *.
      change (keeper L L' g) with (ev m (added L L') y).
      assert (YZ : ev m Z y = 0).
      { rewrite <- (ev_zero m Z). apply ev_ext. intros a Ha. apply setdims_other. apply in_minus in Ha. tauto. }
      split.
      - intros K. split; [|apply (keeper_holds L L' x g OK OK' SH P0 Hx Hh K)].
        rewrite <- YZ. apply ev_ext. intros a Ha. apply (ev_inj m (added L L')); auto.
        apply in_minus in Ha. tauto.
      - intros [K Kh]. apply ev_ext. intros a Ha.
        destruct (in_dec Nat.eq_dec a (used (dims L))) as [I|I].
        + apply used_in in I as [i [Hi I]]. apply (ev_inj m (atoms (dim_at (dims L) i))); auto.
          rewrite <- !shard_of_nth. destruct Kh as [_ <-], Hy as [_ <-]. reflexivity.
        + apply (ev_inj m Z); auto. { rewrite YZ. auto. } apply in_minus. auto. }
    destruct (Nat.eqb_spec (ev m (added L L') x) (keeper L L' g)) as [K|K].
    + apply KH in K as [K1 K2]. rewrite K1 in CO. fold m in CO.
      pose proof (partitions_once _ _ g CO) as ON. rewrite <- filter_region in ON.
      rewrite (proj2 (tile_area_holds _ _ _ _ Hm Hx) K2) in ON.
      destruct (one_value (fun r => S (peer r) (rem m (dims L) g)) _ ON) as [r [ER ->]].
      assert (IR : In r (filter (fun r => inside_area (region r) g) (receives s))) by (rewrite ER; simpl; auto).
      apply filter_In in IR as [IR1 IR2]. specialize (SO r IR1). unfold sender_ok in SO.
      rewrite !andb_true_iff in SO. destruct SO as [_ S3]. apply same_list_ok in S3. rewrite S3. auto.
    + rewrite filter_none; auto. intros r Hr. destruct (inside_area (region r) g) eqn:IN; auto. exfalso. apply K, KH.
      specialize (SO r Hr). unfold sender_ok in SO. rewrite !andb_true_iff in SO. destruct SO as [[_ S2] S3].
      apply same_list_ok in S3. rewrite S3 in S2. split.
      * destruct (keeps L L' x); auto. destruct (receives s); [destruct Hr|discriminate].
      * apply tile_area_holds; auto. eapply contains_inside; eauto.
  - apply Copy; auto; try discriminate. apply Nat.eqb_eq; auto.
Qed.
End Sound.
