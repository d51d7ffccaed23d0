(* Boxes that ranks own and want, and the boxes that travel between them: halos, and boxes that ranks name.
   A wanted box has cells.  Cell c holds element c modulo the extents, so a periodic halo is one box.
   check_boxes      no two owned boxes meet, and they cover the array; each wanted cell is owned, or comes once from an
                    owner; what comes is wanted and not owned; each box that comes is sent
   served_once      a wanted cell is there exactly once, from an owner
   owned_once       an element of the array has one owner
   boxes_optimal    no protocol brings a rank fewer elements *)
From Coq Require Import List Arith Lia PeanoNat Bool.
Import ListNotations.
From Reshard Require Import Mesh Layout Step Meaning Simulate Received Protocol Schedule.

(* A rank and a box of elements that comes from it or goes to it. *)
Definition parcel := (nat * area)%type.
Record member := Member { owns : list area; wants : list area; gets : list parcel; gives : list parcel }.
Definition nobody := Member [] [] [] [].

Definition element (shape : list nat) (cell : idx) : idx := map (fun p => snd p mod fst p) (combine shape cell).

(* The cells of one dimension as intervals of elements. *)
Definition filled (p : nat * nat) : bool := fst p <? snd p.
Definition wraps (n : nat) (p : nat * nat) : list (nat * nat) :=
  filter filled (map (fun k => (Nat.max (fst p) (k * n) - k * n, Nat.min (snd p) ((k + 1) * n) - k * n))
    (seq (fst p / n) (snd p / n + 1 - fst p / n))).
Fixpoint elements_of (shape : list nat) (cells : area) : list area :=
  match shape, cells with
  | [], [] => [[]]
  | n :: shape, p :: cells => flat_map (fun q => map (cons q) (elements_of shape cells)) (wraps n p)
  | _, _ => []
  end.

Definition same_area (b c : area) : bool := forall2b (fun p q => (fst p =? fst q) && (snd p =? snd q)) b c.
Fixpoint distinct (bs : list area) : list area :=
  match bs with [] => [] | b :: r => if existsb (same_area b) r then distinct r else b :: distinct r end.
Definition whole (shape : list nat) : area := map (fun n => (0, n)) shape.
(* With `copies` several ranks may own one box.  With `partial` elements that nobody wants need no owner. *)
Definition owners_ok (copies partial : bool) (shape : list nat) (ms : list member) : bool :=
  let all := flat_map owns ms in
  let bs := if copies then distinct all else all in
  forallb (contains (whole shape)) bs && apart bs && (partial || (sumf volume bs =? volume (whole shape))).

(* The boxes of elements that a rank has in the end. *)
Definition has_at_end (m : member) : list area := owns m ++ map snd (gets m).
Fixpoint meet (b c : area) : area :=
  match b, c with p :: b, q :: c => (Nat.max (fst p) (fst q), Nat.min (snd p) (snd q)) :: meet b c | _, _ => [] end.
Definition serves (m : member) (w : area) : bool :=
  partitions w (filter (forallb filled) (map (meet w) (filter (fun b => length b =? length w) (has_at_end m)))).
Definition served (shape : list nat) (m : member) : bool :=
  forallb (fun w => (length w =? length shape) && forallb (fun n => 0 <? n) shape &&
                    forallb (serves m) (elements_of shape w)) (wants m).
Definition gets_ok (shape : list nat) (ms : list member) (x : nat) (m : member) : bool :=
  apart (has_at_end m) &&
  forallb (fun p => negb (fst p =? x) &&
                    existsb (fun o => contains o (snd p)) (owns (nth (fst p) ms nobody)) &&
                    existsb (fun w => contains w (snd p)) (flat_map (elements_of shape) (wants m))) (gets m).
(* y gives x the boxes that x gets from y, in the same order. *)
Definition with_peer (y : nat) (ps : list parcel) : list area := map snd (filter (fun p => fst p =? y) ps).
Definition pairs_agree (ms : list member) (x : nat) (m : member) : bool :=
  forallb (fun p => fst p <? length ms) (gives m) &&
  forallb (fun yn => same_areas (with_peer x (gives (snd yn))) (with_peer (fst yn) (gets m)))
    (combine (seq 0 (length ms)) ms).

Definition check_boxes (copies partial : bool) (shape : list nat) (ms : list member) : bool :=
  owners_ok copies partial shape ms &&
  forallb (fun xm => served shape (snd xm) && gets_ok shape ms (fst xm) (snd xm) && pairs_agree ms (fst xm) (snd xm))
    (combine (seq 0 (length ms)) ms).

Definition received_elements (m : member) : nat := sumf volume (map snd (gets m)).

(* Cells and elements *)
Lemma wraps_hold n p c : 0 < n -> fst p <= c -> c < snd p ->
  exists q, In q (wraps n p) /\ fst q <= c mod n /\ c mod n < snd q.
Proof.
  intros Hn H1 H2. set (k := c / n).
  pose proof (Nat.div_mod c n ltac:(lia)) as D. pose proof (Nat.mod_upper_bound c n ltac:(lia)) as U. fold k in D.
  exists (Nat.max (fst p) (k * n) - k * n, Nat.min (snd p) ((k + 1) * n) - k * n).
  assert (M : c mod n = c - k * n) by nia.
  assert (B : fst (Nat.max (fst p) (k * n) - k * n, Nat.min (snd p) ((k + 1) * n) - k * n) <= c mod n /\
              c mod n < snd (Nat.max (fst p) (k * n) - k * n, Nat.min (snd p) ((k + 1) * n) - k * n))
    by (simpl; split; [lia|]; destruct (Nat.min_spec (snd p) ((k + 1) * n)) as [[_ ->]|[_ ->]]; nia).
  split; auto. unfold wraps. apply filter_In. split.
  - apply in_map_iff. exists k. split; auto. apply in_seq.
    pose proof (Nat.div_le_mono (fst p) c n ltac:(lia) H1). pose proof (Nat.div_le_mono c (snd p) n ltac:(lia)).
    unfold k in *. lia.
  - unfold filled. apply Nat.ltb_lt. lia.
Qed.

Lemma wraps_from n p q i : 0 < n -> In q (wraps n p) -> fst q <= i -> i < snd q ->
  exists c, fst p <= c /\ c < snd p /\ c mod n = i.
Proof.
  intros Hn Hq H1 H2. apply filter_In in Hq as [Hq _]. apply in_map_iff in Hq as [k [<- _]]. simpl in *.
  exists (i + k * n). split; [lia|]. split; [lia|]. rewrite Nat.mod_add by lia. apply Nat.mod_small. nia.
Qed.

Lemma inside_cons p a i g : inside_area (p :: a) (i :: g) = true <->
  (fst p <= i /\ i < snd p) /\ inside_area a g = true.
Proof. unfold inside_area. simpl. rewrite !andb_true_iff, Nat.leb_le, Nat.ltb_lt. tauto. Qed.
Lemma inside_length a g : inside_area a g = true -> length a = length g.
Proof.
  unfold inside_area. revert g; induction a as [|p a IH]; destruct g as [|i g]; simpl; intros H; auto; try discriminate.
  apply andb_true_iff in H as [_ H]. rewrite (IH g); auto.
Qed.

Lemma elements_hold shape w c : forallb (fun n => 0 <? n) shape = true -> length w = length shape ->
  inside_area w c = true -> exists e, In e (elements_of shape w) /\ inside_area e (element shape c) = true.
Proof.
  revert w c; induction shape as [|n shape IH]; intros w c HP HL HI.
  - destruct w; [|discriminate]. apply inside_length in HI as E. destruct c; [|discriminate]. exists []. simpl; auto.
  - destruct w as [|p w]; [discriminate|]. apply inside_length in HI as E. destruct c as [|i c]; [discriminate|].
    simpl in HP. apply andb_true_iff in HP as [HP HP']. apply Nat.ltb_lt in HP. apply inside_cons in HI as [[H1 H2] HI].
    destruct (IH w c) as [e [I1 I2]]; auto. destruct (wraps_hold n p i HP H1 H2) as [q [Q1 [Q2 Q3]]].
    exists (q :: e). split.
    + simpl. apply in_flat_map. exists q. split; auto. apply in_map; auto.
    + change (element (n :: shape) (i :: c)) with (i mod n :: element shape c). apply inside_cons. auto.
Qed.

Lemma elements_from shape w e g : forallb (fun n => 0 <? n) shape = true -> In e (elements_of shape w) ->
  inside_area e g = true -> exists c, inside_area w c = true /\ element shape c = g.
Proof.
  revert w e g; induction shape as [|n shape IH]; intros w e g HP HE HI; destruct w as [|p w]; simpl in HE.
  - destruct HE as [<-|[]]. apply inside_length in HI. destruct g; [|discriminate]. exists []. auto.
  - destruct HE.
  - destruct HE.
  - simpl in HP. apply andb_true_iff in HP as [HP HP']. apply Nat.ltb_lt in HP.
    apply in_flat_map in HE as [q [Q HE]]. apply in_map_iff in HE as [e' [<- HE]].
    apply inside_length in HI as E. destruct g as [|i g]; [discriminate|]. apply inside_cons in HI as [[H1 H2] HI].
    destruct (IH w e' g) as [c [C1 C2]]; auto. destruct (wraps_from n p q i HP Q H1 H2) as [j [J1 [J2 J3]]].
    exists (j :: c). split. { apply inside_cons; auto. }
    change (element (n :: shape) (j :: c)) with (j mod n :: element shape c). rewrite J3, C2. auto.
Qed.

Lemma meet_inside w b g : length b = length w ->
  inside_area (meet w b) g = inside_area w g && inside_area b g.
Proof.
  unfold inside_area. revert b g; induction w as [|p w IH]; destruct b as [|q b]; simpl; intros g E; try discriminate.
  - destruct g; auto.
  - destruct g as [|i g]; simpl; auto. rewrite (IH b g) by lia.
    destruct (Nat.leb_spec (Nat.max (fst p) (fst q)) i), (Nat.ltb_spec i (Nat.min (snd p) (snd q))),
      (Nat.leb_spec (fst p) i), (Nat.ltb_spec i (snd p)), (Nat.leb_spec (fst q) i), (Nat.ltb_spec i (snd q));
      simpl; try lia; auto; rewrite ?andb_false_r; auto.
Qed.
Lemma inside_filled b g : inside_area b g = true -> forallb filled b = true.
Proof.
  revert g; induction b as [|p b IH]; intros g H; auto. apply inside_length in H as E.
  destruct g as [|i g]; [discriminate|]. apply inside_cons in H as [[H1 H2] H]. simpl. rewrite (IH g H), andb_true_r.
  unfold filled. apply Nat.ltb_lt. lia.
Qed.

(* Boxes cut to a wanted one hold each of its elements as often as they did. *)
Lemma cut_once w bs g : inside_area w g = true ->
  length (filter (fun b => inside_area b g)
    (filter (forallb filled) (map (meet w) (filter (fun b => length b =? length w) bs)))) =
  length (filter (fun b => inside_area b g) bs).
Proof.
  intros W. apply inside_length in W as EW. induction bs as [|b bs IH]; simpl; auto.
  destruct (Nat.eqb_spec (length b) (length w)) as [E|E]; simpl.
  - pose proof (meet_inside w b g E) as M. rewrite W in M. simpl in M.
    destruct (forallb filled (meet w b)) eqn:F; simpl; rewrite ?M.
    + destruct (inside_area b g); simpl; rewrite IH; auto.
    + destruct (inside_area b g) eqn:I; simpl; auto. rewrite (inside_filled (meet w b) g) in F; [discriminate|].
      rewrite M; auto.
  - destruct (inside_area b g) eqn:I; auto. apply inside_length in I. congruence.
Qed.

Lemma member_in (ms : list member) x m : nth_error ms x = Some m -> In (x, m) (combine (seq 0 (length ms)) ms).
Proof.
  enough (F : forall k, nth_error ms x = Some m -> In (k + x, m) (combine (seq k (length ms)) ms)) by apply (F 0).
  revert x; induction ms as [|n ms IH]; intros x k H; destruct x as [|x]; simpl in *; try discriminate.
  - injection H as ->. rewrite Nat.add_0_r. auto.
  - right. replace (k + S x) with (S k + x) by lia. apply IH; auto.
Qed.

Lemma check_boxes_inv copies partial shape ms x m :
  check_boxes copies partial shape ms = true -> nth_error ms x = Some m ->
  served shape m = true /\ gets_ok shape ms x m = true.
Proof.
  unfold check_boxes. rewrite andb_true_iff, forallb_forall. intros [_ H] I. apply member_in in I.
  specialize (H _ I). simpl in H. rewrite !andb_true_iff in H. tauto.
Qed.

(* Each wanted cell is there exactly once: the rank owns its element, or one box brings it from an owner. *)
Theorem served_once copies partial shape ms x m w c :
  check_boxes copies partial shape ms = true -> nth_error ms x = Some m -> In w (wants m) ->
  inside_area w c = true ->
  let g := element shape c in
  length (filter (fun b => inside_area b g) (has_at_end m)) = 1 /\
  ((exists o, In o (owns m) /\ inside_area o g = true) \/
   (exists y b o, In (y, b) (gets m) /\ y <> x /\ inside_area b g = true /\
                  In o (owns (nth y ms nobody)) /\ inside_area o g = true)).
Proof.
  intros C I Hw Hc g. destruct (check_boxes_inv _ _ _ _ _ _ C I) as [S G].
  unfold served in S. rewrite forallb_forall in S. specialize (S w Hw). rewrite !andb_true_iff in S.
  destruct S as [[L P] S]. rewrite forallb_forall in S. apply Nat.eqb_eq in L.
  destruct (elements_hold shape w c P L Hc) as [e [E1 E2]]. fold g in E2.
  specialize (S e E1). unfold serves in S. pose proof (partitions_once _ _ g S) as ON.
  rewrite E2, cut_once in ON by auto.
  split; auto. destruct (filter _ (has_at_end m)) as [|b bs] eqn:F; [discriminate|].
  assert (IB : In b (filter (fun b => inside_area b g) (has_at_end m))) by (rewrite F; simpl; auto).
  apply filter_In in IB as [IB HB]. apply in_app_iff in IB as [IB|IB]; [left; eauto|right].
  apply in_map_iff in IB as [[y b'] [<- IB]]. simpl in *.
  unfold gets_ok in G. rewrite !andb_true_iff, forallb_forall in G. destruct G as [_ G]. specialize (G _ IB).
  rewrite !andb_true_iff, negb_true_iff in G. simpl in G. destruct G as [[N O] _]. apply Nat.eqb_neq in N.
  apply existsb_exists in O as [o [O1 O2]]. exists y, b', o. repeat split; auto. eapply contains_inside; eauto.
Qed.

Lemma same_area_eq b c : same_area b c = true -> b = c.
Proof.
  unfold same_area. revert c; induction b as [|[p p'] b IH]; destruct c as [|[q q'] c]; simpl; intros H; auto;
    try discriminate.
  rewrite !andb_true_iff, !Nat.eqb_eq in H. destruct H as [[-> ->] H]. rewrite (IH c H). auto.
Qed.
Lemma distinct_in bs b : In b (distinct bs) -> In b bs.
Proof.
  induction bs as [|c bs IH]; simpl; auto. destruct (existsb (same_area c) bs); simpl; intros H; auto. destruct H; auto.
Qed.

(* An element has one owner at most, or several with equal boxes where copies are allowed.  It has one unless the owned
   boxes may be only a part of the array. *)
Theorem owned_once copies partial shape ms g : check_boxes copies partial shape ms = true ->
  length (filter (fun o => inside_area o g) (distinct (flat_map owns ms))) <= 1 /\
  (copies = false -> length (filter (fun o => inside_area o g) (flat_map owns ms)) <= 1) /\
  (partial = false -> inside_area (whole shape) g = true ->
    exists x m o, nth_error ms x = Some m /\ In o (owns m) /\ inside_area o g = true).
Proof.
  unfold check_boxes, owners_ok. intros C. apply andb_true_iff in C as [O _].
  set (all := flat_map owns ms) in *. set (bs := if copies then distinct all else all) in *.
  apply andb_true_iff in O as [O V]. pose proof O as O'. apply andb_true_iff in O' as [_ A].
  pose proof (apart_once bs g A) as ON.
  assert (D : forall l, length (filter (fun o => inside_area o g) (distinct l)) <=
                        length (filter (fun o => inside_area o g) l)).
  { induction l as [|b l IH]; simpl; auto. destruct (existsb (same_area b) l); simpl;
      destruct (inside_area b g); simpl; lia. }
  split; [|split].
  - specialize (D all). destruct copies; subst bs; simpl in *; lia.
  - intros ->. auto.
  - intros -> W. assert (P : partitions (whole shape) bs = true) by (unfold partitions; rewrite O; exact V).
    pose proof (partitions_once _ _ g P) as E. rewrite W in E.
    destruct (filter _ bs) as [|o os] eqn:F; [discriminate|].
    assert (IO : In o (filter (fun b => inside_area b g) bs)) by (rewrite F; simpl; auto).
    apply filter_In in IO as [I1 I2]. assert (IA : In o all) by (subst bs; destruct copies; auto using distinct_in).
    apply in_flat_map in IA as [m [I3 I4]]. apply In_nth_error in I3 as [x I3]. eauto 6.
Qed.

Lemma apart_nodup bs : apart bs = true -> NoDup (concat (map points bs)).
Proof.
  induction bs as [|b bs IH]; simpl; intros A. { constructor. } apply andb_true_iff in A as [A1 A2].
  apply nodup_app_intro; auto using nodup_points.
  intros h H1 H2. apply in_concat in H2 as [ps [H2 H3]]. apply in_map_iff in H2 as [c [<- H2]].
  rewrite forallb_forall in A1. apply in_points in H1, H3. eapply disjoint_inside; eauto.
Qed.
Lemma concat_points_length bs : length (concat (map points bs)) = sumf volume bs.
Proof. induction bs; simpl; auto. rewrite app_length, points_length, IHbs. auto. Qed.
Lemma apart_app bs cs : apart (bs ++ cs) = true ->
  apart cs = true /\ forall b c, In b bs -> In c cs -> disjoint b c = true.
Proof.
  induction bs as [|b bs IH]; simpl; intros A; [split; auto; intros b c []|].
  apply andb_true_iff in A as [A1 A2]. destruct (IH A2) as [I1 I2]. split; auto.
  intros b' c [<-|B] Hc; auto. rewrite forallb_forall in A1. apply A1, in_app_iff; auto.
Qed.

Definition owner_has (ms : list member) (y : nat) (g : idx) : Prop :=
  exists o, In o (owns (nth y ms nobody)) /\ inside_area o g = true.

(* Whatever the protocol, a rank that ends with all it wants receives at least as many elements. *)
Theorem boxes_optimal copies partial shape ms x m ts H' :
  check_boxes copies partial shape ms = true -> nth_error ms x = Some m ->
  protocol nat idx (owner_has ms) ts H' ->
  (forall w c, In w (wants m) -> inside_area w c = true -> H' x (element shape c)) ->
  received_elements m <= recv nat idx Nat.eq_dec x ts.
Proof.
  intros C I P HW. destruct (check_boxes_inv _ _ _ _ _ _ C I) as [S G].
  unfold gets_ok in G. rewrite andb_true_iff, forallb_forall in G. destruct G as [A G].
  unfold received_elements. rewrite <- concat_points_length. destruct (apart_app _ _ A) as [A1 A2].
  eapply recv_lower_bound; eauto using apart_nodup.
  intros g Hg. apply in_concat in Hg as [ps [Hb Hg]]. apply in_map_iff in Hb as [b [<- Hb]]. apply in_points in Hg.
  split.
  - apply in_map_iff in Hb as [p [<- Hp]]. specialize (G p Hp). rewrite !andb_true_iff in G. destruct G as [_ G].
    apply existsb_exists in G as [e [E1 E2]]. apply in_flat_map in E1 as [w [W1 W2]].
    unfold served in S. rewrite forallb_forall in S. specialize (S w W1). rewrite !andb_true_iff in S.
    destruct S as [[_ S] _].
    destruct (elements_from shape w e g S W2 (contains_inside _ _ _ E2 Hg)) as [c [C1 C2]].
    rewrite <- C2. eapply HW; eauto.
  - intros [o [O1 O2]]. rewrite (nth_error_nth _ _ nobody I) in O1. eapply disjoint_inside; eauto.
Qed.
