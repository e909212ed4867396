import { parseArgs } from "node:util";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    depth: { type: "string", short: "d", default: "2" },
    all: { type: "boolean", short: "a" },
    only: { type: "string", multiple: true },
  },
});
console.log(values, positionals);
