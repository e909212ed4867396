// What an adapter in JavaScript needs: one case a line on stdin, one answer a line on stdout.
import { createInterface } from "node:readline";

export async function serve(answer) {
  for await (const line of createInterface({ input: process.stdin })) {
    let found;
    try {
      found = { arguments: answer(JSON.parse(line)) };
    } catch (error) {
      found = { refused: String(error).slice(0, 300) };
    }
    process.stdout.write(JSON.stringify(found) + "\n");
  }
}

export const textOf = (payload) => (typeof payload === "string" ? payload : JSON.stringify(payload));
export const objectOf = (payload) => (typeof payload === "string" ? JSON.parse(payload) : payload);
