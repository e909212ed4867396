// What an adapter in JavaScript needs: one case a line on stdin, one answer a line on stdout.
import { createInterface } from "node:readline";

export async function serve(answer) {
  for await (const line of createInterface({ input: process.stdin })) {
    const asked = JSON.parse(line);
    const start = performance.now();
    let found;
    try {
      found = { arguments: answer(asked) };
    } catch (error) {
      found = { refused: String(error).slice(0, 300) };
    }
    found.microseconds = (performance.now() - start) * 1000;
    process.stdout.write(JSON.stringify(found) + "\n");
  }
}

export const textOf = (payload) => (typeof payload === "string" ? payload : JSON.stringify(payload));
export const objectOf = (payload) => (typeof payload === "string" ? JSON.parse(payload) : payload);
