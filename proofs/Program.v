(* Schedules of programs: tasks and moves in one order.  Activities are numbered by their positions in the order.
   before i j     activity i makes an input of j, or j is declared to run after i
   together i j   i and j need one engine or one card, which serves one activity at a time
   buffer         memory of a place.  Its maker takes it (None: held from the beginning).  It is free when all
                  activities of `frees` have ended (an empty list: never).  Only places with a limit have buffers
   fits           the order stays within the limits if the activities run one by one
   start          when each activity starts: `Times` in synth/program
   step, runs     executions that follow the order, whatever the durations.  A device need not start its activities in
                  the order (`follows`): a move that takes no memory may start before earlier ones
   pieces i j     j uses the pieces of move i as they arrive

   times_keep     if the order fits, `start` is defined and keeps the order
   times_least    ... and no schedule that keeps the order starts anything earlier
   times_valid    ... and it is valid: inputs first, one activity at a time, never above a limit
   fits_iff       an order that does not fit has no schedule that keeps it
   sorted_least   a valid schedule loses nothing if its activities are ordered by their starts
   later_frees    ... but in another order it may be faster than `start`: memory that a later activity frees sooner
   never_stuck    an execution can always go on until all has ended
   never_over     no execution passes a limit
   runs_end       no execution has more than two steps for each activity *)
From Coq Require Import List Arith Lia PeanoNat Bool.
Import ListNotations.

Record buffer := Buffer { place : nat; bytes : nat; maker : option nat; frees : list nat }.

(* Bytes that a place holds after the activities of `made` have started and those of `ended` have ended. *)
Definition freed (ended : nat -> bool) (b : buffer) : bool :=
  match frees b with [] => false | l => forallb ended l end.
Definition made_by (made : nat -> bool) (b : buffer) : bool :=
  match maker b with None => true | Some m => made m end.
Definition counts (made ended : nat -> bool) (b : buffer) : bool := made_by made b && negb (freed ended b).
Fixpoint held (l : list buffer) (made ended : nat -> bool) (p : nat) : nat :=
  match l with
  | [] => 0
  | b :: l => (if (place b =? p) && counts made ended b then bytes b else 0) + held l made ended p
  end.

Lemma held_le l made ended made' ended' p :
  (forall b, In b l -> place b = p -> 0 < bytes b -> counts made ended b = true -> counts made' ended' b = true) ->
  held l made ended p <= held l made' ended' p.
Proof.
  induction l as [|b l IH]; simpl; intros H; [lia|].
  assert (T : held l made ended p <= held l made' ended' p) by (apply IH; auto).
  specialize (H b (or_introl eq_refl)).
  destruct (place b =? p) eqn:P; simpl; [|lia]. apply Nat.eqb_eq in P.
  destruct (counts made ended b); [|lia].
  destruct (bytes b) eqn:B; [destruct (counts made' ended' b); lia|].
  rewrite H by (auto; lia). lia.
Qed.

Lemma freed_sooner e e' b : (forall i, In i (frees b) -> e i = true -> e' i = true) ->
  freed e b = true -> freed e' b = true.
Proof.
  unfold freed. destruct (frees b) as [|x l]; [discriminate|].
  intros H F. rewrite forallb_forall in *. auto.
Qed.

Lemma counts_more m m' e e' b : (forall i, maker b = Some i -> m i = true -> m' i = true) ->
  (forall i, In i (frees b) -> e' i = true -> e i = true) -> counts m e b = true -> counts m' e' b = true.
Proof.
  unfold counts, made_by. rewrite !andb_true_iff, !negb_true_iff. intros M F [C N]. split.
  - destruct (maker b); auto.
  - destruct (freed e' b) eqn:E; auto. apply (freed_sooner e' e) in E; auto. congruence.
Qed.

(* The first number up to h at which f holds, or h. *)
Fixpoint first (f : nat -> bool) (h : nat) : nat :=
  match h with 0 => 0 | S h => if f 0 then 0 else S (first (fun t => f (S t)) h) end.
Lemma first_holds h : forall f, f h = true -> f (first f h) = true.
Proof.
  induction h as [|h IH]; intros f H; simpl; auto.
  destruct (f 0) eqn:Z; auto. apply (IH (fun t => f (S t))); auto.
Qed.
Lemma first_least h : forall f t, f t = true -> first f h <= t.
Proof.
  induction h as [|h IH]; intros f t H; simpl; [lia|].
  destruct (f 0) eqn:Z; [lia|]. destruct t as [|t]; [congruence|].
  assert (first (fun t => f (S t)) h <= t) by (apply IH; auto). lia.
Qed.

Lemma last_such (f : nat -> bool) n : (forall k, k < n -> f k = false) \/
  exists j, j < n /\ f j = true /\ forall k, k < n -> f k = true -> k <= j.
Proof.
  induction n as [|n IH]; [left; lia|].
  destruct (f n) eqn:E.
  - right. exists n. repeat split; auto; lia.
  - destruct IH as [H|[j [L [J M]]]].
    + left. intros k K. destruct (Nat.eq_dec k n); subst; auto. apply H; lia.
    + right. exists j. repeat split; auto. intros k K F. destruct (Nat.eq_dec k n); [subst; congruence|].
      apply M; auto; lia.
Qed.
Lemma first_missing (f : nat -> bool) n : (forall k, k < n -> f k = true) \/
  exists j, j < n /\ f j = false /\ forall i, i < j -> f i = true.
Proof.
  induction n as [|n [H|[j [L J]]]]; [left; lia| |right; exists j; split; auto].
  destruct (f n) eqn:E.
  - left. intros k K. destruct (Nat.eq_dec k n); subst; auto. apply H; lia.
  - right. exists n. auto.
Qed.

Section Program.
Variable n : nat.
Variables before together : nat -> nat -> bool.
Variable buffers : list buffer.
Variable limit : nat -> nat.

Definition waits (i j : nat) : bool := before i j || together i j.

Definition takes (j p : nat) : bool :=
  existsb (fun b => match maker b with Some m => m =? j | None => false end && (place b =? p) && (0 <? bytes b)) buffers.
Lemma takes_spec j p : takes j p = true <->
  exists b, In b buffers /\ maker b = Some j /\ place b = p /\ 0 < bytes b.
Proof.
  unfold takes. rewrite existsb_exists. split; intros [b [I H]]; exists b; split; auto.
  - rewrite !andb_true_iff in H. destruct H as [[M P] B]. apply Nat.eqb_eq in P. apply Nat.ltb_lt in B.
    destruct (maker b); [|discriminate]. apply Nat.eqb_eq in M. subst. auto.
  - destruct H as [M [P B]]. rewrite M. apply Nat.eqb_eq in P. apply Nat.ltb_lt in B.
    rewrite Nat.eqb_refl, P, B. auto.
Qed.

Notation none := (fun _ : nat => false).
Notation up_to j := (fun i => i <=? j).
Notation under j := (fun i => i <? j).
Notation hold := (held buffers).

(* One by one: what is held when j has started, and all before it have ended. *)
Definition fits : Prop :=
  (forall p, hold none none p <= limit p) /\
  (forall j p, j < n -> takes j p = true -> hold (up_to j) (under j) p <= limit p).

Section Timed.
Variable lasts : nat -> nat.

(* Ended at t, as far as j may know: only what is before j in the order counts. *)
Definition ended_for (s : nat -> nat) (j t i : nat) : bool := (i <? j) && (s i + lasts i <=? t).

(* Activity j may start at t, if those before it start at s. *)
Record may_start (s : nat -> nat) (j t : nat) : Prop := {
  inputs_ended : forall i, i < j -> waits i j = true -> s i + lasts i <= t;
  takers_started : forall i p, i < j -> takes i p = true -> takes j p = true -> s i <= t;
  memory_left : forall p, takes j p = true -> hold (up_to j) (ended_for s j t) p <= limit p }.

Definition places : list nat := map place buffers.
Definition may_start_b (s : nat -> nat) (j t : nat) : bool :=
  forallb (fun i => implb (waits i j) (s i + lasts i <=? t)) (seq 0 j) &&
  forallb (fun p => implb (takes j p)
    (forallb (fun i => implb (takes i p) (s i <=? t)) (seq 0 j) &&
     (hold (up_to j) (ended_for s j t) p <=? limit p))) places.

Lemma implb_spec a b : implb a b = true <-> (a = true -> b = true).
Proof. destruct a, b; simpl; intuition congruence. Qed.
Lemma takes_place j p : takes j p = true -> In p places.
Proof. rewrite takes_spec. intros [b [I [_ [P _]]]]. subst. apply in_map; auto. Qed.

Lemma may_start_spec s j t : may_start_b s j t = true <-> may_start s j t.
Proof.
  unfold may_start_b. rewrite andb_true_iff, !forallb_forall. split.
  - intros [W M]. split.
    + intros i L H. specialize (W i). rewrite in_seq, implb_spec, Nat.leb_le in W. apply W; auto; lia.
    + intros i p L I J. specialize (M p (takes_place _ _ J)).
      rewrite implb_spec, andb_true_iff, forallb_forall in M. destruct (M J) as [T _].
      specialize (T i). rewrite in_seq, implb_spec, Nat.leb_le in T. apply T; auto; lia.
    + intros p J. specialize (M p (takes_place _ _ J)).
      rewrite implb_spec, andb_true_iff, Nat.leb_le in M. apply M; auto.
  - intros [W T M]. split.
    + intros i I. apply in_seq in I. rewrite implb_spec, Nat.leb_le. intros. apply W; auto; lia.
    + intros p _. rewrite implb_spec, andb_true_iff, forallb_forall, Nat.leb_le. intros J. split; auto.
      intros i I. apply in_seq in I. rewrite implb_spec, Nat.leb_le. intros. eapply T; eauto; lia.
Qed.

(* Earlier starts free earlier, and an activity that may start may start later, too. *)
Lemma may_start_sooner s s' j t t' : (forall i, i < j -> s i <= s' i) -> t' <= t ->
  may_start s' j t' -> may_start s j t.
Proof.
  intros L T [W K M]. split.
  - intros i I H. specialize (W i I H). specialize (L i I). lia.
  - intros i p I H J. specialize (K i p I H J). specialize (L i I). lia.
  - intros p J. eapply Nat.le_trans; [|apply (M p J)].
    apply held_le. intros b _ _ _. apply counts_more; auto.
    intros i _. unfold ended_for. rewrite !andb_true_iff, !Nat.ltb_lt, !Nat.leb_le.
    intros [I E]. specialize (L i I). lia.
Qed.

(* The latest end of those before k. *)
Fixpoint horizon (s : nat -> nat) (k : nat) : nat :=
  match k with 0 => 0 | S k => Nat.max (horizon s k) (s k + lasts k) end.
Lemma horizon_le s k i : i < k -> s i + lasts i <= horizon s k.
Proof.
  induction k as [|k IH]; intros I; [lia|]. simpl.
  destruct (Nat.eq_dec i k); [subst; lia|]. specialize (IH ltac:(lia)). lia.
Qed.

(* The starts of the first k activities. *)
Fixpoint times (k : nat) : nat -> nat :=
  match k with
  | 0 => fun _ => 0
  | S k => fun i => if i =? k then first (may_start_b (times k) k) (horizon (times k) k) else times k i
  end.
Definition start (j : nat) : nat := times (S j) j.

Lemma times_start k i : i < k -> times k i = start i.
Proof.
  induction k as [|k IH]; intros I; [lia|].
  destruct (Nat.eq_dec i k); [subst; reflexivity|].
  simpl. apply Nat.eqb_neq in n0. rewrite n0. apply Nat.eqb_neq in n0. apply IH. lia.
Qed.
Lemma may_start_times j t : may_start (times j) j t <-> may_start start j t.
Proof.
  split; apply may_start_sooner; auto; intros i I; rewrite times_start; auto.
Qed.

Definition keeps (s : nat -> nat) : Prop :=
  (forall p, hold none none p <= limit p) /\ forall j, j < n -> may_start s j (s j).

Theorem times_least s : keeps s -> forall j, j < n -> start j <= s j.
Proof.
  intros [_ K] j. induction j as [j IH] using lt_wf_ind. intros J.
  unfold start. simpl. rewrite Nat.eqb_refl. apply first_least, may_start_spec, may_start_times.
  eapply may_start_sooner; [|reflexivity|apply K; auto].
  intros i I. apply IH; auto; lia.
Qed.

Theorem times_keep : fits -> keeps start.
Proof.
  intros [Z F]. split; auto. intros j J. apply may_start_times.
  unfold start. simpl. rewrite Nat.eqb_refl. apply may_start_spec, first_holds, may_start_spec. split.
  - intros i I _. apply horizon_le; auto.
  - intros i p I _ _. pose proof (horizon_le (times j) j i I). lia.
  - intros p T. eapply Nat.le_trans; [|apply (F j p J T)].
    apply held_le. intros b _ _ _. apply counts_more; auto.
    intros i _ I. apply Nat.ltb_lt in I. unfold ended_for. rewrite andb_true_iff, Nat.ltb_lt, Nat.leb_le.
    split; auto. apply horizon_le; auto.
Qed.

Theorem keeps_fits s : keeps s -> fits.
Proof.
  intros [Z K]. split; auto. intros j p J T.
  eapply Nat.le_trans; [|apply (memory_left _ _ _ (K j J) p T)].
  apply held_le. intros b _ _ _. apply counts_more; auto.
  intros i _. unfold ended_for. rewrite andb_true_iff. tauto.
Qed.

(* A schedule is valid if inputs come first, an engine or card serves one activity at a time, and no place is ever
   above its limit. *)
Definition started_at (s : nat -> nat) (t i : nat) : bool := s i <=? t.
Definition ended_at (s : nat -> nat) (t i : nat) : bool := s i + lasts i <=? t.
Record valid (s : nat -> nat) : Prop := {
  inputs_first : forall i j, i < n -> j < n -> before i j = true -> s i + lasts i <= s j;
  one_at_a_time : forall i j, i < n -> j < n -> i <> j -> together i j = true ->
    s i + lasts i <= s j \/ s j + lasts j <= s i;
  within_limits : forall t p, hold (started_at s t) (ended_at s t) p <= limit p }.

(* The order has each activity after its inputs, and buffers name its activities. *)
Definition ordered : Prop := forall i j, i < n -> j < n -> before i j = true -> i < j.
Definition symmetric : Prop := forall i j, together i j = together j i.
Definition named : Prop := forall b, In b buffers ->
  (forall m, maker b = Some m -> m < n) /\ (forall i, In i (frees b) -> i < n).

Lemma keeps_valid s : ordered -> symmetric -> named -> keeps s -> valid s.
Proof.
  intros O Y N [Z K]. split.
  - intros i j I J B. apply (inputs_ended _ _ _ (K j J)); auto. unfold waits. rewrite B. auto.
  - intros i j I J D T. destruct (Nat.lt_total i j) as [L|[L|L]]; [left|lia|right].
    + apply (inputs_ended _ _ _ (K j J)); auto. unfold waits. rewrite T. apply orb_true_r.
    + apply (inputs_ended _ _ _ (K i I)); auto. unfold waits. rewrite Y, T. apply orb_true_r.
  - intros t p. destruct (last_such (fun j => takes j p && (s j <=? t)) n) as [A|[j [J [T M]]]].
    + eapply Nat.le_trans; [|apply (Z p)]. apply held_le. intros b I P B C.
      revert C. unfold counts, made_by. rewrite !andb_true_iff, !negb_true_iff. intros [C _]. split.
      * destruct (maker b) as [m|] eqn:E; auto. exfalso.
        assert (L : m < n) by (apply (proj1 (N b I)); auto). specialize (A m L).
        rewrite (proj2 (takes_spec m p)) in A by eauto. unfold started_at in C. simpl in A. congruence.
      * unfold freed. destruct (frees b); auto.
    + apply andb_true_iff in T as [T L]. apply Nat.leb_le in L.
      eapply Nat.le_trans; [|apply (memory_left _ _ _ (K j J) p T)].
      apply held_le. intros b I P B. apply counts_more.
      * intros m E C. apply Nat.leb_le. apply M; [apply (proj1 (N b I)); auto|].
        rewrite (proj2 (takes_spec m p)) by eauto. exact C.
      * intros i _. unfold ended_for, ended_at. rewrite andb_true_iff, !Nat.leb_le. lia.
Qed.

Theorem times_valid : ordered -> symmetric -> named -> fits -> valid start.
Proof. intros. apply keeps_valid; auto. apply times_keep; auto. Qed.

(* A valid schedule keeps the order of its starts. *)
Lemma sorted_keeps s : named -> (forall j, j < n -> 0 < lasts j) ->
  (forall i j, i < j -> j < n -> s i <= s j) ->
  (forall p, hold none none p <= limit p) -> valid s -> keeps s.
Proof.
  intros N P S Z [F O W]. split; auto. intros j J. split.
  - intros i I. unfold waits. rewrite orb_true_iff. intros [B|T].
    + apply F; auto; lia.
    + destruct (O i j) as [H|H]; auto; try lia. specialize (S i j I J). specialize (P j J). lia.
  - intros i p I _ _. apply S; auto.
  - intros p T. eapply Nat.le_trans; [|apply (W (s j) p)].
    apply held_le. intros b I _ _. apply counts_more.
    + intros m E L. apply Nat.leb_le in L. unfold started_at. apply Nat.leb_le.
      destruct (Nat.eq_dec m j); [subst; lia|]. apply S; auto; lia.
    + intros i Q. unfold ended_at, ended_for. rewrite andb_true_iff, Nat.ltb_lt, !Nat.leb_le. intros H. split; auto.
      assert (H0 : i < n) by (apply (proj2 (N b I)); auto). specialize (P i H0).
      destruct (Nat.lt_ge_cases i j) as [L|L]; auto. destruct (Nat.eq_dec i j); [subst; lia|].
      specialize (S j i ltac:(lia) H0). lia.
Qed.

Theorem sorted_least s : ordered -> symmetric -> named -> (forall j, j < n -> 0 < lasts j) ->
  (forall i j, i < j -> j < n -> s i <= s j) -> (forall p, hold none none p <= limit p) -> valid s ->
  fits /\ valid start /\ forall j, j < n -> start j <= s j.
Proof.
  intros O Y N P S Z V. pose proof (sorted_keeps s N P S Z V) as K.
  pose proof (keeps_fits s K) as F. repeat split; try apply F; try apply (times_valid O Y N F).
  apply times_least; auto.
Qed.
End Timed.

Theorem fits_iff lasts : fits <-> exists s, keeps lasts s.
Proof. split; [exists (start lasts); apply times_keep; auto | intros [s K]; eapply keeps_fits; eauto]. Qed.

(* Executions.  An activity starts as soon as inputs, engines and cards, earlier takers and memory allow, and the earlier
   activities that it follows have started: none, or all of its device, as a runtime likes.  An activity that runs may
   end at any time.  Memory counts at once, whoever frees it. *)
Variable follows : nat -> nat -> bool.
(* pieces i j: j uses the pieces of move i as they arrive.  It starts after i has started, and ends after i has ended. *)
Variable pieces : nat -> nat -> bool.
Definition streamed : Prop := forall i j, pieces i j = true -> i < j /\ follows i j = true.
Definition add (j : nat) (f : nat -> bool) (i : nat) : bool := (i =? j) || f i.
Inductive step : (nat -> bool) * (nat -> bool) -> (nat -> bool) * (nat -> bool) -> Prop :=
| begins S E j : j < n -> S j = false ->
    (forall i, i < j -> waits i j = true -> E i = true) ->
    (forall i p, i < j -> takes i p = true -> takes j p = true -> S i = true) ->
    (forall i, i < j -> follows i j = true -> S i = true) ->
    (forall p, takes j p = true -> hold (add j S) E p <= limit p) -> step (S, E) (add j S, E)
| finishes S E j : j < n -> S j = true -> E j = false ->
    (forall i, pieces i j = true -> E i = true) -> step (S, E) (S, add j E).
Inductive runs : nat -> (nat -> bool) * (nat -> bool) -> Prop :=
| runs_begin : runs 0 (none, none)
| runs_step k a b : runs k a -> step a b -> runs (S k) b.

Lemma add_self j f : add j f j = true.
Proof. unfold add. rewrite Nat.eqb_refl. auto. Qed.
Lemma add_old j f i : f i = true -> add j f i = true.
Proof. unfold add. intros H. rewrite H. apply orb_true_r. Qed.
Lemma add_inv j f i : add j f i = true -> i = j \/ f i = true.
Proof. unfold add. rewrite orb_true_iff, Nat.eqb_eq. auto. Qed.

(* At each place memory is taken in the order. *)
Lemma takers_first k a : runs k a -> forall i j p, i < j -> takes i p = true -> takes j p = true ->
  fst a j = true -> fst a i = true.
Proof.
  induction 1 as [|k a b R IH T]; simpl; [congruence|].
  destruct T as [S E x X N W K L M|S E x X H N O]; simpl in *.
  - intros i j p I Ti Tj A. apply add_old. apply add_inv in A as [A|A]; [subst; eauto|]. eapply IH; eauto.
  - apply IH.
Qed.

Theorem never_over : fits -> forall k a p, runs k a -> hold (fst a) (snd a) p <= limit p.
Proof.
  intros [Z _] k a p R. induction R as [|k a b R IH T]; simpl; auto.
  destruct T as [S E x X N W K L M|S E x X H N O]; simpl in *.
  - destruct (takes x p) eqn:Q; auto.
    eapply Nat.le_trans; [|apply IH]. apply held_le. intros b I P B. apply counts_more; auto.
    intros m E' A. apply add_inv in A as [A|A]; auto. subst m. exfalso.
    rewrite (proj2 (takes_spec x p)) in Q by eauto. discriminate.
  - eapply Nat.le_trans; [|apply IH]. apply held_le. intros b _ _ _. apply counts_more; auto.
    intros i _. apply add_old.
Qed.

Lemma followed_first k a : runs k a -> forall i j, i < j -> follows i j = true -> fst a j = true -> fst a i = true.
Proof.
  induction 1 as [|k a b R IH T]; simpl; [congruence|].
  destruct T as [S E x X N W K L M|S E x X H N O]; simpl in *.
  - intros i j I P A. apply add_old. apply add_inv in A as [A|A]; [subst; eauto|]. eapply IH; eauto.
  - apply IH.
Qed.

(* The first activity that has started and has not ended may end: the moves whose pieces it uses have ended. *)
Theorem never_stuck : fits -> streamed -> forall k a, runs k a ->
  (forall j, j < n -> snd a j = true) \/ exists b, step a b.
Proof.
  intros [_ F] U k [S E] R. simpl.
  destruct (first_missing (fun j => negb (S j && negb (E j))) n) as [A|[j [J [C A]]]].
  2: { right. apply negb_false_iff, andb_true_iff in C as [C D]. apply negb_true_iff in D.
       exists (S, add j E). apply finishes; auto. intros i Q. destruct (U i j Q) as [I L].
       specialize (A i I). simpl in A. pose proof (followed_first k (S, E) R i j I L C) as T. simpl in T.
       rewrite T in A. destruct (E i); auto. }
  assert (D : forall j, j < n -> S j = true -> E j = true).
  { intros j J H. specialize (A j J). simpl in A. rewrite H in A. destruct (E j); auto. }
  destruct (first_missing S n) as [H|[j [J [M B]]]]; [left; auto|right].
  exists (add j S, E). apply begins; auto.
  - intros i I _. apply D; auto; lia.
  - intros p T. eapply Nat.le_trans; [|apply (F j p J T)].
    apply held_le. intros b I P Y. apply counts_more.
    + intros m Q A'. apply Nat.leb_le. apply add_inv in A' as [A'|A']; [lia|].
      destruct (Nat.lt_ge_cases j m) as [L|L]; auto. exfalso.
      assert (S j = true); [|congruence].
      apply (takers_first k (S, E) R j m p); auto. apply takes_spec. eauto.
    + intros i _ L. apply Nat.ltb_lt in L. apply D; auto; lia.
Qed.

(* Two steps for each activity. *)
Fixpoint count (f : nat -> bool) (k : nat) : nat :=
  match k with 0 => 0 | S k => (if f k then 1 else 0) + count f k end.
Lemma count_le f k : count f k <= k.
Proof. induction k as [|k IH]; simpl; auto. destruct (f k); lia. Qed.
Lemma count_none k : count none k = 0.
Proof. induction k; simpl; auto. Qed.
Lemma count_add f j k : f j = false -> count (add j f) k = count f k + if j <? k then 1 else 0.
Proof.
  intros N. induction k as [|k IH]; auto.
  simpl. rewrite IH. unfold add at 1.
  destruct (Nat.eq_dec k j) as [->|D].
  - rewrite Nat.eqb_refl, N, Nat.ltb_irrefl. destruct (Nat.ltb_spec j (S j)); simpl; lia.
  - apply Nat.eqb_neq in D as Q. rewrite Q. simpl.
    destruct (Nat.ltb_spec j k), (Nat.ltb_spec j (S k)); destruct (f k); lia.
Qed.

Theorem runs_end k a : runs k a -> k <= 2 * n.
Proof.
  assert (H : runs k a -> k = count (fst a) n + count (snd a) n).
  { induction 1 as [|k a b R IH T]; simpl; [rewrite count_none; auto|].
    destruct T as [S E x X N W K L M|S E x X H N O]; simpl in *;
      rewrite count_add, (proj2 (Nat.ltb_lt _ _) X) by auto; lia. }
  intros R. rewrite (H R). pose proof (count_le (fst a) n). pose proof (count_le (snd a) n). lia.
Qed.
End Program.

(* A limit of 2.  Activity 0 takes 10 and frees a byte; activity 2 takes 1 and frees the other; activity 1 takes a byte.
   In the order 0, 1, 2 activity 1 waits for activity 0, though the byte of activity 2 is free at 1.  The schedule 0, 1,
   0 is valid, and in the order of its starts (0, 2, 1) it is the least. *)
Definition corner : list buffer := [Buffer 0 1 None [0]; Buffer 0 1 None [2]; Buffer 0 1 (Some 1) [1]].
Definition corner_lasts (j : nat) : nat := match j with 0 => 10 | _ => 1 end.
Definition corner_starts (j : nat) : nat := match j with 1 => 1 | _ => 0 end.
Definition no (i j : nat) : bool := false.
Theorem later_frees : valid 3 no no corner (fun _ => 2) corner_lasts corner_starts /\
  start no no corner (fun _ => 2) corner_lasts 1 = 10.
Proof.
  split; [|vm_compute; auto]. split; try discriminate.
  intros t p. unfold corner, started_at, ended_at. cbn -[Nat.leb].
  unfold counts, made_by, freed. cbn -[Nat.leb].
  destruct p; simpl (_ =? _); cbn -[Nat.leb]; try lia.
  destruct (Nat.leb_spec 10 t), (Nat.leb_spec 1 t), (Nat.leb_spec 2 t); simpl; lia.
Qed.
