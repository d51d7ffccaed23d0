// Asks the planner of the page in node: node ask.js PLANNER.js PAGE.js. Reads a line of JSON for each question: {"fields"} as
// the form has them, {"line"}, {"log"} or {"error"}. Writes a line for each: the answer as a text, and the milliseconds that it took.
"use strict";
const [planner, page] = process.argv.slice(2);
const {Planner, fieldsOfDTensor, questionOf} = require(page);
const lines = require("fs").readFileSync(0, "utf-8").split("\n").filter((line) => line);

(async () => {
  const asked = new Planner(() => require(planner)());
  await asked.log("");  // loads it
  for (const line of lines) {
    const one = JSON.parse(line);
    const fields = one.error !== undefined ? fieldsOfDTensor(one.error) : one.fields;
    const begin = process.hrtime.bigint();
    const answer = one.log !== undefined ? await asked.text("reshard_log", one.log)
      : await asked.text("reshard_question", one.line !== undefined ? one.line : questionOf(fields));
    const milliseconds = Number(process.hrtime.bigint() - begin) / 1e6;
    console.log(JSON.stringify({answer, milliseconds}));
  }
})();
