// ajv: coerceTypes with arrays, on what JSON.parse reads.
import Ajv from "ajv/dist/2020.js";
import { objectOf, serve } from "./adapter.mjs";

const ajv = new Ajv({ coerceTypes: "array", strict: false, validateFormats: false });

serve(({ schema, payload }) => {
  const { $schema, ...rest } = schema; // one dialect for all
  const validate = ajv.compile(rest);
  const value = objectOf(payload);
  if (!validate(value)) throw new Error(ajv.errorsText(validate.errors));
  return value;
});
