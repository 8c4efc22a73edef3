import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { answerParent } from "../../processes/answer.ts";
import { usageAnswers } from "../../processes/usage.ts";

// The least that can be called a JSON-RPC server: it reads the body, parses it, and says the text back.
// Nothing is checked, nothing can fail well: no server that does its work could cost less.
const server = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on("data", (chunk: Buffer) => chunks.push(chunk));
  request.on("end", () => {
    const { id, params } = chunks.length === 0 ? { id: null } : JSON.parse(Buffer.concat(chunks).toString("utf8"));
    const text = JSON.stringify({ jsonrpc: "2.0", id, result: { content: [{ type: "text", text: params?.arguments?.text }] } });
    response.writeHead(200, { "content-type": "application/json", "content-length": Buffer.byteLength(text) });
    response.end(text);
  });
});
server.keepAliveTimeout = 75_000;
server.listen(0, "127.0.0.1", () => {
  answerParent(usageAnswers(`http://127.0.0.1:${(server.address() as AddressInfo).port}`));
});
