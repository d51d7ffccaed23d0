(* The lower bound in closed form, without looking at devices.
   lower_bound_tiles          target - product of minima of tile extents, on device zero, for any atoms and extents
   lower_bound_comparable     ... is the optimum where in every dimension one axis list is a prefix of the other
   lower_bound_incomparable   otherwise some device holds nothing of what it wants
   exchange_exact             what an exchange receives on a device, as products of intervals
   foreign_attained           missing_elements is what some device of an exchange receives: the optimum
   all_to_all_optimal         a typed all_to_all, as a typed all_gather, is at the lower bound
   optimum_ge_half            a non-zero optimum is at least half the target tile *)
From Coq Require Import List Arith Lia PeanoNat Bool.
Import ListNotations.
From Reshard Require Import Mesh Layout Step Meaning Simulate Received Check Protocol Bound.

(* The elements that an exchange receives, counted dimension by dimension. *)
Lemma exchange_foreign L L' x : layout_ok L = true -> layout_ok L' = true -> same_shape (dims L) (dims L') ->
  same_mesh L L' = true -> ev (mesh_of L) (unreduced L) x = ev (mesh_of L') (unreduced L') x ->
  summand_count L = summand_count L' -> valid (mesh_of L') x ->
  received exchange L L' x = length (foreign (mesh_of L) (dims L) (dims L') x).
Proof.
  intros OK OK' SH EM EV SU Hx. rewrite <- fetched_received by auto. unfold foreign.
  pose proof EM as E. apply same_mesh_ok in E. pose proof OK as OKi. apply layout_ok_iff in OKi as [Hm _].
  unfold fetched. replace (tile (mesh_of L) (dims L') x) with (tile (mesh_of L') (dims L') x) by (rewrite E; auto).
  f_equal. apply filter_ext_in. intros l Hl.
  pose proof (exchange_fetched L L' x l OK OK' SH SU EM Hx Hl) as F.
  unfold fetched in F. rewrite filter_In in F.
  assert (HH : has L x (element L' x l) <-> sat (at_homes (mesh_of L) (dims L) (dims L') x) l = true).
  { pose proof Hl as Hl'. apply in_tile_list in Hl' as [[Ll _] _].
    rewrite sat_at_homes by (auto using same_shape_length). unfold has, element. rewrite holds_full by auto.
    replace (holds (mesh_of L) (dims L) x (gidx (mesh_of L) (dims L') x l)) with
      (holds (mesh_of L) (dims L) x (gidx (mesh_of L') (dims L') x l)) by (rewrite E; auto).
    split; [tauto|]. intros H. split; [rewrite SU; apply ev_lt; auto|]. split; auto. }
  destruct (negb (others L L' x (sources exchange L L' x l) =? 0)) eqn:O.
  - assert (F1 : ~ has L x (element L' x l)) by (apply F; auto). rewrite HH in F1.
    destruct (sat _ l); auto; tauto.
  - destruct (sat _ l) eqn:S1; auto. exfalso.
    assert (F1 : ~ has L x (element L' x l)) by (rewrite HH; congruence).
    apply F in F1. destruct F1 as [_ F1]. discriminate.
Qed.

(* The heuristic of the search is admissible: tile extents alone bound what device zero receives, in any protocol
   that carries the summands unchanged, even or uneven, whatever the atoms. *)
Theorem lower_bound_tiles L L' : layout_ok L = true -> layout_ok L' = true -> same_shape (dims L) (dims L') ->
  same_mesh L L' = true -> summand_count L = summand_count L' ->
  received exchange L L' (zero_dev (mesh_of L)) = tile_elements L' - overlap L L'.
Proof.
  intros OK OK' SH EM SU. pose proof EM as E. apply same_mesh_ok in E.
  pose proof OK as OKi. apply layout_ok_iff in OKi as [Hm _].
  rewrite exchange_foreign; auto.
  - pose proof (foreign_count (mesh_of L) (dims L) (dims L') (zero_dev (mesh_of L)) (same_shape_length _ _ SH)) as F.
    destruct (counts_zero _ _ _ Hm SH) as [C1 C2]. rewrite C1, C2 in F.
    unfold tile_elements, overlap. rewrite <- E. lia.
  - rewrite <- E, !ev_zero. auto.
  - rewrite <- E. apply zero_valid; auto.
Qed.

Corollary heuristic_admissible p bound v : check_plan p bound = Accept v ->
  (forall s, In s (steps p) -> mesh_of (snd s) = mesh_of (source p) /\ moves (fst s) = true) ->
  mesh_of (target p) = mesh_of (source p) -> summand_count (source p) = summand_count (target p) ->
  tile_elements (target p) - overlap (source p) (target p) <=
  received_plan (source p) (steps p) (map (fun _ => zero_dev (mesh_of (source p))) (steps p)).
Proof.
  intros C HP EM SU. pose proof C as C'. unfold check_plan in C'.
  destruct (layout_ok (source p)) eqn:O1; [|discriminate]. destruct (layout_ok (target p)) eqn:O2; [|discriminate].
  destruct (same_array (source p) (target p)) eqn:SA; [|discriminate]. apply same_array_ok in SA.
  rewrite <- (lower_bound_tiles (source p) (target p)); auto; [|apply same_mesh_ok; auto].
  eapply plan_lower_bound; eauto. apply zero_valid. apply layout_ok_iff in O1. tauto.
Qed.

(* All dimensions comparable: the busiest receiver of the best protocol gets exactly target - product of minima. *)
Theorem lower_bound_comparable L L' : layout_ok L = true -> layout_ok L' = true -> same_shape (dims L) (dims L') ->
  comparable L L' = true ->
  (forall x, valid (mesh_of L) x -> received exchange L L' x <= tile_elements L' - overlap L L') /\
  received exchange L L' (zero_dev (mesh_of L)) = tile_elements L' - overlap L L'.
Proof.
  intros OK OK' SH C. split.
  - intros x Hx. apply received_comparable; auto.
  - unfold comparable in C. rewrite !andb_true_iff in C. destruct C as [[EM EU] _].
    apply lower_bound_tiles; auto. unfold summand_count. apply same_mesh_ok in EM. apply same_unreduced_ok in EU.
      congruence.
Qed.

(* sizes divide: all tiles of the dimension are full *)
Definition divides (m : mesh) (d : dim) : Prop := extent d = tile_extent m d * shard_count m d.

Lemma count_all p c : (forall i, i < c -> p i = true) -> count p c = c.
Proof.
  intros H. unfold count. rewrite filter_all. { apply seq_length. }
  intros i Hi. apply in_seq in Hi. apply H; lia.
Qed.
Lemma tile_full m t x : valid m x ->
  (forall i, i < length t -> ev m (atoms (dim_at t i)) x = 0 \/ divides m (dim_at t i)) ->
  length (tile m t x) = size m t.
Proof.
  intros Hx H. unfold tile, extents_of. rewrite counts_filter by (unfold insides; rewrite !map_length; auto).
  revert H. unfold dim_at. induction t as [|d t IH]; intros H; auto. cbn [map insides counts size].
  rewrite <- IH by (intros i Hi; apply (H (S i)); simpl; lia). f_equal.
  apply count_all. intros i Hi. unfold inside. apply Nat.ltb_lt.
  pose proof (tile_le_extent m d (valid_mesh_ok m x Hx)). pose proof (ev_lt m (atoms d) x Hx).
  destruct (H 0 ltac:(simpl; lia)) as [Z|Z]; simpl in Z.
  - rewrite Z. lia.
  - unfold divides, shard_count in Z. nia.
Qed.

(* Two axis lists of a dimension part ways at a <> b: the device with the last digit b and zeros elsewhere wants the end
   of its shard and holds only the beginning, so it holds nothing of what it wants. *)
Theorem lower_bound_incomparable L L' i P a A b B : layout_ok L = true -> layout_ok L' = true ->
  same_shape (dims L) (dims L') -> same_mesh L L' = true -> summand_count L = summand_count L' ->
  i < length (full L) ->
  atoms (dim_at (full L) i) = P ++ a :: A -> atoms (dim_at (full L') i) = P ++ b :: B -> a <> b ->
  2 <= sz (mesh_of L) a -> 2 <= sz (mesh_of L) b ->
  divides (mesh_of L) (dim_at (full L) i) -> divides (mesh_of L) (dim_at (full L') i) ->
  exists x, valid (mesh_of L) x /\ received exchange L L' x = tile_elements L'.
Proof.
  intros OK OK' SH EM SU Hi EA EB N Sa Sb Da Db.
  pose proof EM as E. apply same_mesh_ok in E.
  pose proof OK as OKi. apply layout_ok_iff in OKi as [Hm W].
  pose proof OK' as OKi. apply layout_ok_iff in OKi as [_ W']. rewrite <- E in W'.
  set (m := mesh_of L) in *.
  pose proof (same_shape_length _ _ SH) as HL.
  assert (Hi' : i < length (full L')) by (simpl in *; lia).
  assert (Ib : b < length m).
  { apply W'. apply (in_used _ i). rewrite EB, in_app_iff; simpl; auto. }
  pose proof (zero_valid m Hm) as Z. set (x := upd b (sz m b - 1) (zero_dev m)).
  assert (Hx : valid m x).
  { split. { unfold x; rewrite upd_length; apply Z. } intros k. unfold x.
    destruct (Nat.eq_dec b k) as [<-|Nk].
    - rewrite nth_upd_eq by (rewrite (proj1 Z); lia). lia.
    - rewrite nth_upd_neq by auto. apply Z. }
  assert (Xb : nth b x 0 = sz m b - 1) by (unfold x; apply nth_upd_eq; rewrite (proj1 Z); lia).
  assert (X0 : forall k, k <> b -> nth k x 0 = 0).
  { intros k Hk. unfold x. rewrite nth_upd_neq by auto. apply zero_nth. }
  assert (ZL : forall l, ~ In b l -> ev m l x = 0).
  { induction l; simpl; intros Hl; auto. rewrite X0, IHl by tauto. lia. }
  assert (NDb : NoDup (P ++ b :: B)) by (rewrite <- EB; apply nodup_atoms; apply W').
  assert (NP : ~ In b P). { intros I. eapply nodup_app_disj; eauto. simpl; auto. }
  assert (NB : ~ In b B). { apply nodup_app_r in NDb. inversion NDb; auto. }
  exists x; split; auto.
  assert (TF : length (tile m (dims L') x) = size m (dims L')).
  { apply tile_full; auto. intros j Hj. destruct (Nat.eq_dec (S j) i) as [<-|Nj]; [right; exact Db|].
    left. apply ZL. intros I. apply (atoms_disj (full L') (S j) i b); auto. { apply W'. }
    rewrite EB. apply in_or_app; simpl; auto. }
  unfold tile_elements. rewrite <- E. fold m. rewrite <- TF, <- fetched_received by auto.
  unfold fetched. rewrite filter_all; [rewrite <- E; auto|].
  intros l Hl.
  assert (NH : ~ has L x (element L' x l)).
  2: { assert (Hx' : valid (mesh_of L') x) by (rewrite <- E; auto).
       apply (exchange_fetched L L' x l OK OK' SH SU EM Hx' Hl) in NH.
       apply filter_In in NH. tauto. }
  intros HH. unfold has in HH. fold m in HH. destruct HH as [Hs Hq]. pose proof Hs as [GL GB].
  assert (Q : nth i (quot m (full L) (element L' x l)) 0 = nth i (shard_of m (full L) x) 0) by (rewrite Hq; auto).
  rewrite quot_nth, shard_of_nth in Q by auto.
  apply in_tile_list in Hl as [[Ll _] _].
  (* element = gidx on the full layout at 0 :: l *)
  assert (EL : nth i (element L' x l) 0 =
    tile_extent m (dim_at (full L') i) * ev m (atoms (dim_at (full L') i)) x + nth i (0 :: l) 0).
  { unfold element. rewrite <- E. fold m. destruct i as [|j].
    - change (dim_at (full L') 0) with (Dim (summand_count L') (unreduced L')). unfold summand_count.
      rewrite <- E. fold m. rewrite tile_summand by auto. cbn [nth atoms]. lia.
    - apply (gidx_nth m (dims L') x l j); auto. simpl in Hi'; lia. }
  rewrite EL in Q. clear EL Hq. set (k := nth i (0 :: l) 0) in *. clearbody k.
  unfold divides, shard_count in Da, Db.
  assert (EX : extent (dim_at (full L) i) = extent (dim_at (full L') i)).
  { destruct i as [|j]; simpl; auto. apply (same_shape_at _ _ j SH). }
  rewrite EA in Q, Da. rewrite EB in Q, Db. rewrite !prodsz_app in Da, Db. rewrite !ev_app in Q.
  simpl in Da, Db, Q. rewrite !(ZL P NP), !(ZL B NB), Xb, (X0 a N) in Q.
  assert (CP : 0 < tile_extent m (dim_at (full L) i)).
  { destruct (in_shape_tile m (full L) _ i Hm Hs Hi). auto. }
  pose proof (prodsz_pos m P x Hx). pose proof (prodsz_pos m A x Hx). pose proof (prodsz_pos m B x Hx).
  pose proof (ev_lt m A x Hx) as LA.
  set (c := tile_extent m (dim_at (full L) i)) in *. set (d := tile_extent m (dim_at (full L') i)) in *.
  set (pa := prodsz m A) in *. set (pb := prodsz m B) in *. set (pp := prodsz m P) in *.
  assert (CD : c * (sz m a * pa) = d * (sz m b * pb)).
  { apply (Nat.mul_cancel_l _ _ pp); [lia|].
    replace (pp * (c * (sz m a * pa))) with (c * (pp * (sz m a * pa))) by lia.
    replace (pp * (d * (sz m b * pb))) with (d * (pp * (sz m b * pb))) by lia. lia. }
  assert (F : (d * ((sz m b - 1) * pb) + k) / c < pa).
  { simpl in Q. replace (d * ((sz m b - 1) * pb + 0)) with (d * ((sz m b - 1) * pb)) in Q by lia.
    rewrite Q. lia. }
  assert (F2 : d * ((sz m b - 1) * pb) + k < c * pa).
  { pose proof (Nat.div_mod (d * ((sz m b - 1) * pb) + k) c ltac:(lia)) as DM.
    pose proof (Nat.mod_upper_bound (d * ((sz m b - 1) * pb) + k) c ltac:(lia)).
    set (q := (d * ((sz m b - 1) * pb) + k) / c) in *. nia. }
  assert (F3 : 2 * (c * pa) <= d * (sz m b * pb)) by nia.
  assert (F4 : d * (sz m b * pb) <= 2 * (d * ((sz m b - 1) * pb))) by nia.
  lia.
Qed.

(* Either one list is a prefix of the other or they part ways. *)
Lemma prefix_dec (l l' : list nat) :
  (exists A, l' = l ++ A) \/ (exists A, l = l' ++ A) \/
  exists P a A b B, l = P ++ a :: A /\ l' = P ++ b :: B /\ a <> b.
Proof.
  revert l'; induction l as [|a l IH]; intros l'; [left; exists l'; auto|].
  destruct l' as [|b l']. { right; left; exists (a :: l); auto. }
  destruct (Nat.eq_dec a b) as [<-|N].
  - destruct (IH l') as [[A E]|[[A E]|[P [c [A [d [B [E1 [E2 E3]]]]]]]]].
    + left; exists A; simpl; congruence.
    + right; left; exists A; simpl; congruence.
    + right; right; exists (a :: P), c, A, d, B; simpl; subst; auto.
  - right; right; exists [], a, l, b, l'; auto.
Qed.

Lemma even_splits m d e A : mesh_ok m = true -> extent d = extent e -> divides m d -> divides m e ->
  atoms e = atoms d ++ A -> splits_exactly m d e = true.
Proof.
  intros Hm EX Dd De EA. apply splits_exactly_ok. exists A. split; auto. unfold divides, shard_count in *.
  rewrite EA, prodsz_app in De. pose proof (mesh_ok_prodsz m (atoms d) Hm).
  apply (Nat.mul_cancel_r _ _ (prodsz m (atoms d))); [lia|]. rewrite <- Dd, EX, De. lia.
Qed.

Lemma prodsz_ge2 m l : (forall a, In a l -> 2 <= sz m a) -> l <> [] -> 2 <= prodsz m l.
Proof.
  intros P2 N. destruct l as [|a l]; [congruence|]. simpl. pose proof (P2 a (or_introl eq_refl)).
  assert (1 <= prodsz m l); [|nia].
  assert (P3 : forall b, In b l -> 2 <= sz m b) by (intros; apply P2; simpl; auto). clear - P3.
  induction l as [|b l IH]; simpl; auto. pose proof (P3 b (or_introl eq_refl)).
  assert (1 <= prodsz m l) by (apply IH; intros; apply P3; simpl; auto). nia.
Qed.

Lemma min_size_half m t t' : mesh_ok m = true -> (forall a, In a (used t) -> 2 <= sz m a) ->
  forall2b (nests_exactly m) t t' = true -> min_size m t t' = size m t' \/ 2 * min_size m t t' <= size m t'.
Proof.
  intros Hm. revert t'; induction t as [|d t IH]; destruct t' as [|e t']; intros P2 H; simpl in H; try discriminate;
    auto.
  apply andb_true_iff in H as [H1 H2]. simpl.
  destruct (IH t' (fun a I => P2 a (in_or_app _ _ _ (or_intror I))) H2) as [K|K].
  - rewrite K. unfold nests_exactly in H1. apply orb_true_iff in H1 as [H1|H1]; apply splits_exactly_ok in H1 as [B
    [EB ET]].
    + left. f_equal. pose proof (mesh_ok_prodsz m B Hm). nia.
    + destruct B as [|b B].
      * left. f_equal. simpl in ET. lia.
      * right. assert (2 <= prodsz m (b :: B)).
        { apply prodsz_ge2; [|congruence]. intros a Ha. apply P2. unfold used; simpl. apply in_or_app. left.
          rewrite EB. apply in_or_app; auto. }
        assert (2 * Nat.min (tile_extent m d) (tile_extent m e) <= tile_extent m e) by nia. nia.
  - right. assert (Nat.min (tile_extent m d) (tile_extent m e) <= tile_extent m e) by lia. nia.
Qed.

Lemma comparable_dec m t t' : mesh_ok m = true -> same_shape t t' ->
  (forall d, In d t -> divides m d) -> (forall d, In d t' -> divides m d) ->
  forall2b (nests_exactly m) t t' = true \/
  exists i P a A b B, i < length t /\ atoms (dim_at t i) = P ++ a :: A /\ atoms (dim_at t' i) = P ++ b :: B /\ a <> b.
Proof.
  intros Hm. revert t'; induction t as [|d t IH]; destruct t' as [|e t']; intros SH D D';
    unfold same_shape in SH; simpl in SH; try discriminate; auto.
  injection SH as E1 E2.
  destruct (IH t' E2 (fun d I => D d (or_intror I)) (fun d I => D' d (or_intror I)))
    as [K|[i [P [a [A [b [B [Hi H]]]]]]]].
  2: { right. exists (S i), P, a, A, b, B. split; [simpl; lia|exact H]. }
  assert (Dd : divides m d) by (apply D; simpl; auto). assert (De : divides m e) by (apply D'; simpl; auto).
  destruct (prefix_dec (atoms d) (atoms e)) as [[A EA]|[[A EA]|[P [a [A [b [B [H1 [H2 H3]]]]]]]]].
  - left. simpl. rewrite K. unfold nests_exactly. rewrite (even_splits m d e A); auto.
  - left. simpl. rewrite K. unfold nests_exactly. rewrite (even_splits m e d A); auto. rewrite orb_true_r; auto.
  - right. exists 0, P, a, A, b, B. split; [simpl; lia|]. auto.
Qed.

(* If anything must be received at all, then some device must receive half its target tile: a plan in which nobody
   receives more than its target tile is within a factor of two of the best. *)
Theorem optimum_ge_half L L' : layout_ok L = true -> layout_ok L' = true -> same_shape (dims L) (dims L') ->
  same_mesh L L' = true -> summand_count L = summand_count L' ->
  (forall a, a < length (mesh_of L) -> 2 <= sz (mesh_of L) a) ->
  (forall d, In d (dims L) -> divides (mesh_of L) d) -> (forall d, In d (dims L') -> divides (mesh_of L) d) ->
  (exists x, valid (mesh_of L) x /\ 0 < received exchange L L' x) ->
  exists x, valid (mesh_of L) x /\ tile_elements L' <= 2 * received exchange L L' x.
Proof.
  intros OK OK' SH EM SU P2 D D' [x0 [Hx0 R0]].
  pose proof EM as E. apply same_mesh_ok in E.
  pose proof OK as OKi. apply layout_ok_iff in OKi as [Hm W].
  pose proof OK' as OKi. apply layout_ok_iff in OKi as [_ W']. rewrite <- E in W'.
  assert (HD : forall U, divides (mesh_of L) (Dim (prodsz (mesh_of L) U) U)).
  { intros U. unfold divides, shard_count. rewrite tile_summand by auto. simpl. lia. }
  assert (DF : forall d, In d (full L) -> divides (mesh_of L) d).
  { intros d [<-|I]; auto. apply HD. }
  assert (DF' : forall d, In d (full L') -> divides (mesh_of L) d).
  { intros d [<-|I]; auto. unfold summand_count. rewrite <- E. apply HD. }
  assert (SF : same_shape (full L) (full L')).
  { unfold same_shape, full. simpl. f_equal; auto. }
  destruct (comparable_dec (mesh_of L) (full L) (full L') Hm SF DF DF') as [K|[i [P [a [A [b [B [Hi [H1 [H2
    H3]]]]]]]]]].
  - exists (zero_dev (mesh_of L)). split. { apply zero_valid; auto. }
    simpl in K. apply andb_true_iff in K as [K1 K2].
    assert (PE : forall B, prodsz (mesh_of L) B = 1 -> (forall a, In a B -> a < length (mesh_of L)) -> B = []).
    { intros B HB HR. destruct B as [|c B]; auto. exfalso.
      assert (2 <= prodsz (mesh_of L) (c :: B)); [|lia]. apply prodsz_ge2; [|congruence].
      intros a' Ha'. apply P2, HR; auto. }
    assert (SUr : unreduced L = unreduced L').
    { unfold summand_count in SU. rewrite <- E in SU.
      unfold nests_exactly in K1. apply orb_true_iff in K1 as [K1|K1]; apply splits_exactly_ok in K1 as [B [EB _]];
        simpl in EB;
        rewrite EB in SU; rewrite prodsz_app in SU; pose proof (mesh_ok_prodsz (mesh_of L) B Hm).
      - pose proof (mesh_ok_prodsz (mesh_of L) (unreduced L) Hm).
        rewrite (PE B) in EB; auto. { rewrite app_nil_r in EB; auto. } { nia. }
        intros a' Ha'. apply W'. apply (in_used _ 0). simpl. change (In a' (unreduced L')). rewrite EB. apply
          in_or_app; auto.
      - pose proof (mesh_ok_prodsz (mesh_of L) (unreduced L') Hm).
        rewrite (PE B) in EB; auto. { rewrite app_nil_r in EB; auto. } { nia. }
        intros a' Ha'. apply W. apply (in_used _ 0). simpl. change (In a' (unreduced L)). rewrite EB. apply
          in_or_app; auto. }
    assert (C : comparable L L' = true).
    { unfold comparable. rewrite EM, K2, (proj2 (same_unreduced_ok L L') SUr). auto. }
    destruct (lower_bound_comparable L L' OK OK' SH C) as [LB1 LB2]. rewrite LB2.
    specialize (LB1 x0 Hx0). unfold tile_elements, overlap in *. rewrite <- E in *.
    destruct (min_size_half (mesh_of L) (dims L) (dims L') Hm) as [M1|M1]; auto; try lia.
    intros a' Ha'. apply P2. apply (wf_tail _ _ _ W). auto.
  - assert (Ia : a < length (mesh_of L)). { apply W. apply (in_used _ i). rewrite H1, in_app_iff; simpl; auto. }
    assert (Ib : b < length (mesh_of L)). { apply W'. apply (in_used _ i). rewrite H2, in_app_iff; simpl; auto. }
    assert (LF : length (full L) = length (full L')) by (apply same_shape_length; auto).
    destruct (lower_bound_incomparable L L' i P a A b B OK OK' SH EM SU Hi H1 H2 H3 (P2 a Ia) (P2 b Ib)) as [x [Hx R]].
    + apply DF. apply nth_In; auto.
    + apply DF'. apply nth_In; lia.
    + exists x. split; auto. lia.
Qed.

(* The elements that an exchange receives on device x: its new tile, less what two intervals share in every dimension. *)
Theorem exchange_exact L L' x : layout_ok L = true -> layout_ok L' = true -> same_shape (dims L) (dims L') ->
  same_mesh L L' = true -> summand_count L = summand_count L' -> valid (mesh_of L) x ->
  received exchange L L' x = foreign_at L L' x.
Proof.
  intros OK OK' SH EM SU Hx. pose proof EM as E. apply same_mesh_ok in E.
  pose proof OK as OKi. apply layout_ok_iff in OKi as [Hm _]. unfold foreign_at.
  destruct (Nat.eqb_spec (ev (mesh_of L) (unreduced L) x) (ev (mesh_of L) (unreduced L') x)) as [EV|EV].
  - rewrite exchange_foreign; auto; [|congruence|rewrite <- E; auto].
    pose proof (foreign_count (mesh_of L) (dims L) (dims L') x (same_shape_length _ _ SH)) as F.
    rewrite counts_wanted, counts_kept in F by auto. lia.
  - rewrite Nat.sub_0_r, <- tile_length, <- fetched_received by auto. unfold fetched. rewrite E.
    rewrite filter_all; auto. intros l Hl. assert (Hx' : valid (mesh_of L') x) by (rewrite <- E; auto).
    assert (N : ~ has L x (element L' x l)).
    { intros H. unfold has, element in H. apply holds_full in H as [_ [H _]]; auto. apply EV. rewrite E at 2. auto. }
    apply (exchange_fetched L L' x l) in N; auto. apply filter_In in N. tauto.
Qed.

Lemma even_layout_ok L : even_layout L = true -> forall d, In d (dims L) -> divides (mesh_of L) d.
Proof.
  unfold even_layout. rewrite forallb_forall. intros H d Hd. apply H in Hd. apply Nat.eqb_eq. exact Hd.
Qed.
Lemma prefix_comparable m t t' : mesh_ok m = true -> same_shape t t' ->
  (forall d, In d t -> divides m d) -> (forall d, In d t' -> divides m d) ->
  forall2b (nests m) t t' = true -> forall2b (nests_exactly m) t t' = true.
Proof.
  intros Hm. revert t'; induction t as [|d t IH]; destruct t' as [|e t']; intros SH D D' N; simpl in N; try
    discriminate; auto.
  unfold same_shape in SH; simpl in SH. injection SH as E1 E2. apply andb_true_iff in N as [N1 N2]. simpl.
  rewrite (IH t' E2 (fun d I => D d (or_intror I)) (fun d I => D' d (or_intror I)) N2), andb_true_r.
  assert (Dd : divides m d) by (apply D; simpl; auto). assert (De : divides m e) by (apply D'; simpl; auto).
  unfold nests, joins in N1. unfold nests_exactly. apply orb_true_iff in N1 as [N1|N1]; apply splits_ok in N1 as [B
    [EB _]].
  - rewrite (even_splits m d e B); auto.
  - rewrite (even_splits m e d B); auto. rewrite orb_true_r; auto.
Qed.

(* If lists are prefixes of each other, missing_elements is exactly what the busiest receiver of an exchange gets. *)
Lemma foreign_attained L L' : layout_ok L = true -> layout_ok L' = true -> same_shape (dims L) (dims L') ->
  same_mesh L L' = true -> same_unreduced L L' = true -> forall2b (nests (mesh_of L)) (dims L) (dims L') = true ->
  exists x, valid (mesh_of L) x /\ received exchange L L' x = missing_elements L L'.
Proof.
  intros OK OK' SH EM EU N. pose proof EM as E. apply same_mesh_ok in E.
  pose proof OK as OKi. apply layout_ok_iff in OKi as [Hm _]. pose proof (zero_valid _ Hm) as Z.
  assert (SU : summand_count L = summand_count L').
  { unfold summand_count. apply same_unreduced_ok in EU. congruence. }
  unfold missing_elements. destruct (comparable L L') eqn:C.
  - exists (zero_dev (mesh_of L)). split; auto. apply lower_bound_tiles; auto.
  - rewrite EM. simpl negb. cbv iota. destruct (even_layout L && even_layout L') eqn:EV.
    + exfalso. apply andb_true_iff in EV as [E1 E2]. unfold comparable in C. rewrite EM, EU in C. simpl in C.
      rewrite prefix_comparable in C; auto; try discriminate.
      * apply even_layout_ok; auto.
      * rewrite E. apply even_layout_ok; auto.
    + destruct (max_attained (foreign_at L L') (devices (mesh_of L'))) as [x [I F]].
      { rewrite <- E. apply device_valid in Z. intros X. rewrite X in Z. destruct Z. }
      apply device_valid in I. rewrite <- E in I. exists x. split; auto. rewrite exchange_exact; auto.
Qed.

(* A typed all_to_all, and a typed all_gather, is at the lower bound: some device of any protocol receives as much. *)
Lemma joins_nests m t t' : forall2b (joins m) t t' = true -> forall2b (nests m) t t' = true.
Proof.
  revert t'; induction t as [|d t IH]; destruct t' as [|e t']; simpl; intros H; auto.
  apply andb_true_iff in H as [H1 H2]. unfold nests at 1. rewrite H1, orb_true_r. apply IH; auto.
Qed.
Theorem all_to_all_optimal L L' : layout_ok L = true -> type_step L all_to_all L' = true ->
  exists x, valid (mesh_of L) x /\ received exchange L L' x = certified all_to_all L L'.
Proof.
  intros OK T. apply type_step_inv in T as [OK' [SH P]]. simpl in P. rewrite !andb_true_iff in P.
  apply foreign_attained; tauto.
Qed.
Theorem all_gather_optimal L L' : layout_ok L = true -> type_step L all_gather L' = true ->
  exists x, valid (mesh_of L) x /\ received exchange L L' x = certified all_gather L L'.
Proof.
  intros OK T. apply type_step_inv in T as [OK' [SH P]]. simpl in P. rewrite !andb_true_iff in P.
  apply foreign_attained; try tauto. apply joins_nests; tauto.
Qed.

(* If sizes divide, a gather over a group of g receives T (g - 1), as an all_to_all T (g - 1) / g. *)
Theorem all_gather_closed L L' : layout_ok L = true -> type_step L all_gather L' = true -> comparable L L' = true ->
  certified all_gather L L' = tile_elements L' - tile_elements L.
Proof.
  intros OK T C. apply type_step_inv in T as [OK' [SH P]]. simpl in P. rewrite !andb_true_iff in P.
  apply layout_ok_iff in OK as [Hm _]. destruct (joins_min _ _ _ Hm (proj2 P)) as [H _].
  simpl. unfold missing_elements. rewrite C. unfold overlap. rewrite H. reflexivity.
Qed.

(* ... and an all_to_all T (g - 1) / g: its new tile less one part in g of the old, g the product of what enters. *)
Fixpoint entering (m : mesh) (t t' : list dim) : nat :=
  match t, t' with
  | d :: t, e :: t' =>
      (match after_prefix (atoms e) (atoms d) with Some B => prodsz m B | None => 1 end) * entering m t t'
  | _, _ => 1
  end.
Lemma entering_min m t t' : mesh_ok m = true -> forall2b (nests_exactly m) t t' = true ->
  size m t = min_size m t t' * entering m t t'.
Proof.
  intros Hm. revert t'; induction t as [|d t IH]; destruct t' as [|e t']; simpl; intros H; auto; try discriminate.
  apply andb_true_iff in H as [H1 H2]. rewrite (IH t' H2).
  enough (E : tile_extent m d = Nat.min (tile_extent m d) (tile_extent m e) *
    match after_prefix (atoms e) (atoms d) with Some B => prodsz m B | None => 1 end) by (rewrite E at 1; lia).
  unfold nests_exactly in H1. apply orb_true_iff in H1 as [H1|H1]; apply splits_exactly_ok in H1 as [B [EB ET]];
    pose proof (mesh_ok_prodsz m B Hm).
  - rewrite (proj2 (after_prefix_ok _ _ B) EB). rewrite Nat.min_r by nia. auto.
  - destruct (after_prefix (atoms e) (atoms d)) as [C|] eqn:EC.
    + (* both prefixes of each other: nothing moves *)
      apply after_prefix_ok in EC. rewrite EB in EC. rewrite <- app_assoc in EC.
      assert (B = [] /\ C = []) as [-> ->].
      { apply app_eq_nil. apply (app_inv_head (atoms e)). rewrite app_nil_r. auto. }
      simpl in *. nia.
    + rewrite Nat.min_l by nia. lia.
Qed.
Theorem all_to_all_closed L L' : layout_ok L = true -> comparable L L' = true -> tile_elements L = tile_elements L' ->
  let g := entering (mesh_of L) (dims L) (dims L') in
  certified all_to_all L L' * g = tile_elements L * (g - 1).
Proof.
  intros OK C ET g. simpl. unfold missing_elements. rewrite C. unfold comparable in C. rewrite !andb_true_iff in C.
  apply layout_ok_iff in OK as [Hm _]. pose proof (entering_min _ _ _ Hm (proj2 C)) as E. fold g in E.
  rewrite <- ET. unfold tile_elements, overlap in *. rewrite E.
  rewrite Nat.mul_sub_distr_r, Nat.mul_sub_distr_l. nia.
Qed.
