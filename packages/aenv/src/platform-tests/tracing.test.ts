import { AsyncLocalStorage } from "node:async_hooks";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { Environment } from "@aenv/sdk";
import { type Context, type ContextManager, context, propagation, ROOT_CONTEXT, trace } from "@opentelemetry/api";
import { W3CTraceContextPropagator } from "@opentelemetry/core";
import { TracerProvider } from "@opentelemetry/sdk-trace";
import { afterEach, expect, it } from "vitest";
import { projects, publish, startPlatform } from "./platform.ts";

interface SpanRecord {
  readonly service: string;
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
}

/** An OTLP collector over HTTP that stores what it receives. */
async function collector(): Promise<{
  url: string;
  until: (isEnough: (spans: SpanRecord[]) => boolean) => Promise<SpanRecord[]>;
  close: () => void;
}> {
  const spans: SpanRecord[] = [];
  const server = createServer(async (request, response) => {
    let text = "";
    for await (const piece of request.setEncoding("utf8")) text += piece;
    for (const { resource, scopeSpans } of JSON.parse(text).resourceSpans) {
      const service = resource.attributes.find((one: { key: string }) => one.key === "service.name").value.stringValue;
      for (const { spans: some } of scopeSpans) for (const span of some) spans.push({ service, ...span });
    }
    response.end("{}");
    server.emit("spans");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    until: async (isEnough) => {
      while (!isEnough(spans)) await once(server, "spans");
      return spans;
    },
    close: () => server.close().closeAllConnections(),
  };
}

/** The caller's trace context, kept across awaits, as a traced program sets it up. */
function asyncContexts(): ContextManager {
  const storage = new AsyncLocalStorage<Context>();
  const manager: ContextManager = {
    active: () => storage.getStore() ?? ROOT_CONTEXT,
    with: (active, work, self, ...args) => storage.run(active, () => work.call(self as never, ...args)),
    bind: (_, target) => target,
    enable: () => manager,
    disable: () => manager,
  };
  return manager;
}

afterEach(() => {
  trace.disable();
  context.disable();
  propagation.disable();
});

it("follows one call from the SDK through the gateway into the sandbox", { timeout: 60_000 }, async () => {
  const otlp = await collector();
  try {
    trace.setGlobalTracerProvider(new TracerProvider());
    context.setGlobalContextManager(asyncContexts());
    propagation.setGlobalPropagator(new W3CTraceContextPropagator());
    await using platform = await startPlatform({ flags: { otlpUrl: otlp.url } });
    await publish(platform, projects.echo);
    await using env = await Environment.create("echo@1.0.0", { controlUrl: platform.controlUrl, dataUrl: platform.dataUrl });

    const span = trace.getTracer("test").startSpan("an agent's turn");
    const { traceId } = span.spanContext();
    const called = context.with(trace.setSpan(context.active(), span), () => env.callTool("echo", { text: "hi" }));
    expect((await called).text).toBe("hi");
    span.end();

    const mine = (spans: SpanRecord[]) => spans.filter((one) => one.traceId === traceId);
    const spans = mine(await otlp.until((all) => new Set(mine(all).map((one) => one.service)).size === 2));
    const gateway = spans.find((one) => one.service === "aenv-server");
    const sandbox = spans.find((one) => one.service === "aenv-sandbox");
    expect(sandbox).toMatchObject({ name: "POST /mcp", parentSpanId: gateway?.spanId });
  } finally {
    otlp.close();
  }
});
