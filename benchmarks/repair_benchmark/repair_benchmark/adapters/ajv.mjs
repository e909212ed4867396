// ajv: coerceTypes on what JSON.parse reads; with "array" as the argument also lists of one.
import Ajv from "ajv/dist/2020.js";
import { objectOf, serve } from "./adapter.mjs";

const coerceTypes = process.argv[2] === "array" ? "array" : true;
const ajv = new Ajv({ coerceTypes, strict: false, validateFormats: false });

const compiled = new Map();

function validatorOf(schema) {
  const { $schema, ...rest } = schema; // one dialect for all
  const key = JSON.stringify(rest);
  if (!compiled.has(key)) compiled.set(key, ajv.compile(rest));
  return compiled.get(key);
}

serve(({ schema, payload }) => {
  const validate = validatorOf(schema);
  const value = objectOf(payload);
  if (!validate(value)) throw new Error(ajv.errorsText(validate.errors));
  return value;
});
