// The page that plans: reads the form, asks the planner (WebAssembly made of tool/browser), and shows its answer. Nothing
// leaves the page. In node, a test loads the functions that need no page.
"use strict";

const FIRST = {mesh: "x=2,y=3", source: "f32[12288@x,4096]", target: "f32[12288@y,4096]", vocabulary: "collectives"};
const OPTIONS = ["vocabulary", "objective", "machine", "peak_bytes_max"];

/** The question as a line of `reshard plan --batch`. Empty fields are left out, except the ends and the mesh. */
function questionOf(fields) {
  const question = {mesh: fields.mesh || "", source: fields.source || "", target: fields.target || ""};
  if (fields.array) question.array = fields.array;
  question.options = {};
  for (const name of OPTIONS) if (fields[name]) question.options[name] = fields[name];
  return JSON.stringify(question);
}

/** The error with the place in its text, as the tool prints it. */
function errorText(error) {
  if (error.text === undefined) return error.message;
  return `${error.message}\n  ${error.text}\n  ${" ".repeat(error.offset)}^`;
}

/** The fields of the first reshard of a log that has a plan, with the options that `explain --log` uses. */
function fieldsOfLog(answer) {
  const row = answer.rows.find((one) => one.problem === undefined);
  if (!row) return null;
  return {mesh: row.mesh, source: row.source, target: row.target, vocabulary: "collectives", objective: "bytes"};
}

/** The text from `begin`, which is behind an open parenthesis, to the closing one. */
function parenthesized(text, begin) {
  for (let depth = 1, at = begin; at < text.length; ++at) {
    if (text[at] === "(") ++depth;
    if (text[at] === ")" && --depth === 0) return text.slice(begin, at);
  }
  return "";
}

/**
 * The fields of an error of DTensor that prints the operands of an operation:
 * `... args_schema=Spec(S(0)R on (8, 16)), Spec(RS(1) on (8, 16)) @ mesh: (2, 4))`. The error names no target. If two
 * operands have one shape, the first one moves to the placements of the other one; else the first one is replicated.
 * null if the text is no such error. The error does not print the type of the elements; the array is of f32.
 */
function fieldsOfDTensor(text) {
  const specs = [];
  for (const found of text.matchAll(/\bSpec\(/g)) {
    const inside = parenthesized(text, found.index + found[0].length);
    const parts = /^(.*) on \(([\d, ]*)\)$/s.exec(inside);
    if (parts) specs.push({placements: parts[1], shape: parts[2].split(",").map(Number).filter((size) => size > 0).join(",")});
  }
  const mesh = /@ mesh: \(([\d, ]+)\)/.exec(text);
  if (specs.length === 0 || !mesh) return null;
  const sizes = mesh[1].split(",").map(Number).filter((size) => size > 0);
  const other = specs.find((one) => one.shape === specs[0].shape && one.placements !== specs[0].placements);
  const replicated = "[" + sizes.map(() => "Replicate()").join(", ") + "]";
  const spec = (one) => `Spec(${one.placements} on (${one.shape}))`;
  return {mesh: `(${sizes.join(", ")})`, array: `f32[${specs[0].shape}]`, source: spec(specs[0]),
    target: other ? spec(other) : replicated, vocabulary: "collectives"};
}

/** Asks the planner. If a question exhausts it, the next question gets a new one. */
class Planner {
  constructor(make) {
    this.make = make;
    this.made = null;
  }
  /** The answer as a line of JSON. */
  async text(name, asked) {
    if (!this.made) this.made = this.make();
    try {
      const made = await this.made;
      const size = made.lengthBytesUTF8(asked) + 1;
      const place = made._malloc(size);  // a log may be larger than the stack
      if (place === 0) throw new Error(`no memory for ${size} bytes of text`);
      made.stringToUTF8(asked, place, size);
      const answer = made.UTF8ToString(made["_" + name](place));
      made._free(place);
      return answer;
    } catch (failure) {
      this.made = null;
      const message = `the planner stopped: ${failure.message || failure}; ask the command line`;
      return JSON.stringify({error: {code: "memory", message}});
    }
  }
  async question(fields) { return JSON.parse(await this.text("reshard_question", questionOf(fields))); }
  async log(text) { return JSON.parse(await this.text("reshard_log", text)); }
}

/** Adds an element with a text to a place of the page. A text is never read as HTML. */
function add(place, kind, text) {
  const element = document.createElement(kind);
  element.textContent = text;
  if (kind === "pre") element.tabIndex = 0;  // it may scroll, so the keyboard must reach it
  place.append(element);
  return element;
}

function show(place, answer, log, operands) {
  place.replaceChildren();
  if (log) add(place, "pre", log.text);
  if (operands) add(place, "p", `The first operand, ${operands.source}, moves to ${operands.target}:`);
  if (!answer) return;
  if (answer.error) {
    add(place, "pre", errorText(answer.error)).className = "planner-error";
    return;
  }
  add(place, "pre", answer.table);
  if (answer.gather) add(place, "p", answer.gather.text);
  for (const [framework, line] of Object.entries(answer.lines)) {
    add(place, "p", framework === "jax" ? "In JAX, inside jit, write:" : "In PyTorch, write:");
    add(place, "pre", line);
  }
  if (answer.picture) {
    const holder = add(place, "p", "");
    holder.tabIndex = 0;
    const picture = add(holder, "img", "");
    picture.alt = "The tile of each device after each step";
    picture.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(answer.picture);
  }
}

function fieldsOf(form) {
  return Object.fromEntries([...new FormData(form)].map(([name, value]) => [name, value.trim()]).filter(([, value]) => value));
}

function fill(form, fields) {
  for (const element of form.elements) element.value = fields[element.name] || "";
}

// The address has the question, so it can be sent to somebody.
function fieldsOfAddress() {
  const fields = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
  return Object.keys(fields).length > 0 ? fields : FIRST;
}

function start() {
  const form = document.getElementById("planner");
  const place = document.getElementById("planner-answer");
  if (typeof reshardPlanner === "undefined") {
    const message = "This copy of the site was made without the planner. Install emscripten, then run ./dev docs.";
    show(place, {error: {message}});
    return;
  }
  const planner = new Planner(() => reshardPlanner());
  let latest = 0;
  const update = async () => {
    const asked = ++latest;
    const fields = fieldsOf(form);
    history.replaceState(null, "", "#" + new URLSearchParams(fields));
    const operands = fields.log ? fieldsOfDTensor(fields.log) : null;
    const log = fields.log && !operands ? await planner.log(fields.log) : null;
    const found = operands || (log ? fieldsOfLog(log) : fields);
    const answer = log && log.error ? log : found ? await planner.question(found) : null;
    if (asked === latest) show(place, answer, log && !log.error ? log : null, operands);
  };
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", update);
  fill(form, fieldsOfAddress());
  update();
}

if (typeof document !== "undefined") start();
else module.exports = {FIRST, Planner, errorText, fieldsOfDTensor, fieldsOfLog, questionOf};
