import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { answerParent } from "../../processes/answer.ts";
import { usageAnswers } from "../../processes/usage.ts";

// A minimal JSON-RPC server: it reads the body, parses it, and echoes the text.
// It validates nothing and handles no errors: no complete server can be cheaper.
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
