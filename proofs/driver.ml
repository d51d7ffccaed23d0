(* Reads one s-expression a line, writes one answer a line; exit 1 if any line was rejected or malformed.

   line     = (check (mesh n..) (shape n..) [(bound n)] (source L) (target L) (plan step..))
            | (schedules (mesh n..) (shape n..) (before L) (step kind L) (ranks rank..))
            | (boxes (shape n..) [copies] [partial] (ranks member..))
   L        = DIMS UNREDUCED [(mesh n..)] [(devices d..)]      DIMS = ((atom..)..)   UNREDUCED = (atom..)
   step     = (kind L)
   rank     = (rank (sends move..) (receives move..) (fills box..))
   member   = (rank (owns box..) (wants box..) (sends move..) (receives move..))
   move     = (peer (begin end)..)             box = ((begin end)..)

   mesh: sizes of the digits of the device number, most major first, all devices: their product; atoms: positions in it.
   devices: the number of the device at each place of the mesh; 0, 1, .. without it.  A plan whose layouts have other
   meshes or devices is judged between meshes.  peer: a device number.  Ranks in order from 0. *)
open Checker

type sx = A of string | L of sx list
exception Bad of string

let parse s =
  let n = String.length s in
  let rec list i depth acc =
    if i >= n then if depth > 0 then raise (Bad "unbalanced") else (List.rev acc, i)
    else match s.[i] with
      | ' ' | '\t' | '\r' -> list (i + 1) depth acc
      | '(' -> let l, j = list (i + 1) (depth + 1) [] in list j depth (L l :: acc)
      | ')' -> if depth = 0 then raise (Bad "unbalanced") else (List.rev acc, i + 1)
      | _ ->
        let j = ref i in
        while !j < n && not (String.contains " ()\t\r" s.[!j]) do incr j done;
        list !j depth (A (String.sub s i (!j - i)) :: acc) in
  fst (list 0 0 [])

let int = function
  | A s -> (match int_of_string_opt s with
      | Some v when v >= 0 && v < 1 lsl 40 -> v
      | _ -> raise (Bad ("number " ^ s)))
  | L _ -> raise (Bad "a number expected")
let ints = function L l -> List.map int l | A _ -> raise (Bad "a list expected")

(* The proofs speak of unbounded numbers: refuse what could leave 62 bits. *)
let guard mesh shape =
  let times p v =
    let q = p * v in
    if q / v <> p || q >= 1 lsl 56 then raise (Bad "too large") else q in
  if List.exists (fun s -> s < 1) mesh then raise (Bad "a mesh size below 1");
  ignore (List.fold_left (fun p v -> times p (max 1 v)) 1 (mesh @ shape))

(* a layout, and the devices that it names *)
let placed_layout mesh shape = function
  | L dims :: unreduced :: rest ->
    let mesh, rest = match rest with
      | L (A "mesh" :: m) :: rest -> let m = List.map int m in guard m shape; m, rest
      | rest -> mesh, rest in
    let devices = match rest with
      | [] -> None
      | [L (A "devices" :: d)] -> Some (List.map int d)
      | _ -> raise (Bad "layout") in
    if List.length dims <> List.length shape then raise (Bad "as many lists of atoms as dimensions expected");
    let dims = List.map2 (fun n a -> { extent = n; atoms = ints a }) shape dims in
    { mesh_of = mesh; dims; unreduced = ints unreduced }, devices
  | _ -> raise (Bad "layout")
let layout mesh shape l = match placed_layout mesh shape l with
  | l, None -> l
  | _, Some _ -> raise (Bad "devices in schedules")

(* Places are looked for one by one. *)
let placed_devices_max = 4096
let placed (l, devices) =
  let n = List.fold_left ( * ) 1 l.mesh_of in
  if n > placed_devices_max then raise (Bad "more than 4096 devices between meshes");
  { lay = l; numbers = match devices with Some d -> d | None -> List.init n Fun.id }

let kinds = ["slice", Slice; "all_gather", All_gather; "all_to_all", All_to_all; "permute", Permute;
             "reduce_scatter", Reduce_scatter; "all_reduce", All_reduce; "zero_fill", Zero_fill; "exchange", Exchange]
let kind k = match List.assoc_opt k kinds with Some k -> k | None -> raise (Bad ("kind " ^ k))
let step layout = function
  | L (A k :: l) -> (kind k, layout l)
  | _ -> raise (Bad "step")

let reason = function
  | Bad_source -> "the source is no layout"
  | Bad_target -> "the target is no layout"
  | Other_array -> "source and target are different arrays"
  | Not_typed n -> Printf.sprintf "step %d is not typed" n
  | Over_bound 0 -> "the source is over the bound"
  | Over_bound n -> Printf.sprintf "step %d is over the bound" n
  | Wrong_end -> "the plan does not end at its target"

let verdict bound v =
  let optimal = match bound with
    | None -> "lower_bound=none"
    | Some b when v.received_total <= b -> Printf.sprintf "lower_bound=%d optimal" b
    | Some 0 -> "lower_bound=0"
    | Some b ->
      (* rounded up: the claim stays true *)
      let q = (v.received_total * 1000 + b - 1) / b in
      Printf.sprintf "lower_bound=%d within %d.%03d" b (q / 1000) (q mod 1000) in
  Printf.sprintf "accept peak=%d received=%d %s" v.peak v.received_total optimal

(* device number -> digits, most major first *)
let digits mesh i =
  let d, over = List.fold_right (fun s (d, i) -> (i mod s :: d, i / s)) mesh ([], i) in
  if over > 0 then raise (Bad "no such device") else d
let interval = function
  | L [b; e] -> (int b, int e)
  | _ -> raise (Bad "interval")
let area = function L l -> List.map interval l | A _ -> raise (Bad "box")
let move mesh = function
  | L (p :: box) -> { peer = digits mesh (int p); region = List.map interval box }
  | _ -> raise (Bad "move")

let member = function
  | L [A "rank"; L (A "owns" :: o); L (A "wants" :: w); L (A "sends" :: ss); L (A "receives" :: rs)] ->
    let parcel = function L (p :: box) -> (int p, List.map interval box) | _ -> raise (Bad "move") in
    { owns = List.map area o; wants = List.map area w; gives = List.map parcel ss; gets = List.map parcel rs }
  | _ -> raise (Bad "rank")

(* Each wrap of a wanted box is a box, and each rank is compared with each. *)
let members_max = 256 and wraps_max = 64
let boxes shape copies partial ranks =
  guard [] shape;
  let ms = List.map member ranks in
  if List.length ms > members_max then raise (Bad "more than 256 ranks");
  let fits n (b, e) = b <= wraps_max * n && e <= wraps_max * n in
  let far w = List.length w = List.length shape && not (List.for_all2 fits shape w) in
  if List.exists (fun m -> List.exists far m.wants) ms then raise (Bad "a wanted box too far from the array");
  if not (check_boxes copies partial shape ms) then
    (false, "reject: an element has no owner or several, or a wanted cell does not come once from an owner")
  else
    let most = List.fold_left (fun n m -> max n (received_elements m)) 0 ms in
    (true, Printf.sprintf "accept received=%d optimal" most)

let answer = function
  | [L [A "check"; L (A "mesh" :: m); L (A "shape" :: n); L (A "source" :: s); L (A "target" :: t);
        L (A "plan" :: p)]] ->
    `Check (m, n, None, s, t, p)
  | [L [A "check"; L (A "mesh" :: m); L (A "shape" :: n); L [A "bound"; b]; L (A "source" :: s); L (A "target" :: t);
        L (A "plan" :: p)]] ->
    `Check (m, n, Some (int b), s, t, p)
  | [L [A "schedules"; L (A "mesh" :: m); L (A "shape" :: n); L (A "before" :: b); L (A "step" :: s);
        L (A "ranks" :: r)]] ->
    `Schedules (m, n, b, s, r)
  | [L (A "boxes" :: L (A "shape" :: n) :: rest)] ->
    let allowed word = function A w :: rest when w = word -> true, rest | rest -> false, rest in
    let copies, rest = allowed "copies" rest in
    let partial, rest = allowed "partial" rest in
    (match rest with [L (A "ranks" :: r)] -> `Boxes (n, copies, partial, r) | _ -> raise (Bad "boxes"))
  | _ -> raise (Bad "neither (check ..), (schedules ..) nor (boxes ..)")

let run line = match answer (parse line) with
  | `Boxes (n, copies, partial, r) -> boxes (List.map int n) copies partial r
  | `Check (m, n, bound, s, t, p) ->
    let mesh = List.map int m and shape = List.map int n in
    guard mesh shape;
    let source = placed_layout mesh shape s and target = placed_layout mesh shape t in
    let steps = List.map (step (placed_layout mesh shape)) p in
    let one_mesh (l, devices) = l.mesh_of = (fst source).mesh_of && devices = None in
    let answer, proved =
      if one_mesh source && one_mesh target && List.for_all (fun (_, l) -> one_mesh l) steps then
        let source = fst source and target = fst target in
        check_plan { source; target; steps = List.map (fun (k, (l, _)) -> (k, l)) steps } bound,
        lazy (lower_bound source target)
      else
        let begins_at = placed source and ends_at = placed target in
        check_between { begins_at; ends_at; way = List.map (fun (k, l) -> (k, placed l)) steps } bound,
        lazy (bound_between begins_at ends_at) in
    (match answer with
     | Accept v -> (true, verdict (Lazy.force proved) v)
     | Reject r -> (false, "reject: " ^ reason r))
  | `Schedules (m, n, b, s, r) ->
    let mesh = List.map int m and shape = List.map int n in
    guard mesh shape;
    if List.fold_left ( * ) 1 mesh > 64 then raise (Bad "more than 64 devices");
    let before = layout mesh shape b in
    let k, after = step (layout mesh shape) (L s) in
    (* a send names a rank of the mesh after, a receive one of the mesh before *)
    let rank = function
      | L [A "rank"; L (A "sends" :: ss); L (A "receives" :: rs); L (A "fills" :: fs)] ->
        { sends = List.map (move after.mesh_of) ss; receives = List.map (move before.mesh_of) rs;
          fills = List.map area fs }
      | _ -> raise (Bad "rank") in
    if check_schedules before k after (List.map rank r) then (true, "accept")
    else (false, "reject: the schedules do not do what the step means")

let () =
  let failed = ref false in
  (try
     while true do
       let line = input_line stdin in
       if String.trim line <> "" then begin
         let ok, text = try run line with
           | Bad why -> (false, "reject: malformed: " ^ why)
           (* sizes that do not divide are counted device by device *)
           | Stack_overflow | Out_of_memory -> (false, "reject: malformed: too many devices to count") in
         if not ok then failed := true;
         print_endline text
       end
     done
   with End_of_file -> ());
  exit (if !failed then 1 else 0)
