import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { Socket } from "node:net";

// Set before a framework is loaded, so that the developer's own settings do not make the tests send traces.
Object.assign(process.env, {
  OPENAI_AGENTS_DISABLE_TRACING: "1",
  MASTRA_TELEMETRY_DISABLED: "1",
  MASTRA_OFFLINE: "1",
  LANGSMITH_TRACING: "false",
  LANGCHAIN_TRACING_V2: "false",
});

/** Records every host outside this machine that this process tries to reach. */
export function watchNetwork(): { readonly outside: readonly string[]; stop(): void } {
  const outside: string[] = [];
  const note = (host: string) => {
    if (host !== "localhost" && host !== "127.0.0.1" && host !== "::1") outside.push(host);
  };
  const onSocket = (event: unknown) => {
    const { socket } = event as { socket: Socket };
    socket.on("lookup", (_error, _address, _family, host) => note(host));
    socket.on("connectionAttempt", (ip: string) => note(ip));
  };
  subscribe("net.client.socket", onSocket);
  return { outside, stop: () => unsubscribe("net.client.socket", onSocket) };
}
