// jsonrepair: it knows no schema.
import { jsonrepair } from "jsonrepair";
import { serve, textOf } from "./adapter.mjs";

serve(({ payload }) => JSON.parse(jsonrepair(textOf(payload))));
