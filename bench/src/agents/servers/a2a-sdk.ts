import type { Server } from "node:http";
import { createRequire } from "node:module";
import type { AddressInfo } from "node:net";
import { answerParent } from "../../processes/answer.ts";
import { usageAnswers } from "../../processes/usage.ts";

// The server of `@a2a-js/sdk`, from the interop tests: it says the text of a data part back in an artifact.

/** What this server uses of the SDK, whose enums are numbers. */
interface Sdk {
  readonly AgentEvent: Readonly<Record<"task" | "artifactUpdate" | "statusUpdate", (event: object) => unknown>>;
  readonly DefaultRequestHandler: new (card: object, store: object, executor: object) => object;
  readonly InMemoryTaskStore: new () => object;
}
interface SdkExpress {
  readonly jsonRpcHandler: (options: { readonly requestHandler: object; readonly userBuilder: unknown }) => unknown;
  readonly UserBuilder: { readonly noAuthentication: unknown };
}
type Express = () => { use(handler: unknown): void; listen(port: number, host: string, done: () => void): Server };
type Handler = (request: { readonly headers: Record<string, string> }, response: unknown, next: () => void) => void;
interface Request {
  readonly taskId: string;
  readonly contextId: string;
  readonly userMessage: {
    readonly parts: readonly { readonly content: { readonly value: { readonly arguments: { readonly text: string } } } }[];
  };
}
const VERSION = "1.0";
const WORKING = 2;
const COMPLETED = 3;

const require = createRequire(new URL("../../../../interop/package.json", import.meta.url));
const sdk: Sdk = require("@a2a-js/sdk/server");
const { jsonRpcHandler, UserBuilder }: SdkExpress = require("@a2a-js/sdk/server/express");
const express: Express = require("express");
const requestHandler = new sdk.DefaultRequestHandler(
  {
    name: "echo",
    description: "Says the text back.",
    version: "1.0.0",
    capabilities: { streaming: true, extensions: [] },
    supportedInterfaces: [{ url: "http://127.0.0.1/", protocolBinding: "JSONRPC", protocolVersion: VERSION }],
    defaultInputModes: ["application/json"],
    defaultOutputModes: ["text/plain"],
    skills: [],
  },
  new sdk.InMemoryTaskStore(),
  { execute, cancelTask: () => Promise.resolve() },
);

async function execute(
  { taskId, contextId, userMessage }: Request,
  bus: { publish(event: unknown): void; finished(): void },
): Promise<void> {
  const of = { taskId, contextId };
  const status = (state: number) => ({ state, timestamp: new Date().toISOString() });
  const text = userMessage.parts[0]?.content.value.arguments.text;
  const parts = [{ content: { $case: "text", value: text }, mediaType: "text/plain" }];
  bus.publish(sdk.AgentEvent.task({ id: taskId, contextId, status: status(WORKING), artifacts: [], history: [userMessage] }));
  bus.publish(
    sdk.AgentEvent.artifactUpdate({ ...of, artifact: { artifactId: "1", parts, extensions: [] }, append: false, lastChunk: true }),
  );
  bus.publish(sdk.AgentEvent.statusUpdate({ ...of, status: status(COMPLETED) }));
  bus.finished();
}

const app = express();
// The load names the version in the query, as clients may; this server reads headers only.
app.use(((request, _, next) => {
  request.headers["a2a-version"] = VERSION;
  next();
}) satisfies Handler);
app.use(jsonRpcHandler({ requestHandler, userBuilder: UserBuilder.noAuthentication }));
const server = app.listen(0, "127.0.0.1", () => {
  answerParent(usageAnswers(`http://127.0.0.1:${(server.address() as AddressInfo).port}`));
});
server.keepAliveTimeout = 75_000;
