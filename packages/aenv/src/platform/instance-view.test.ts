import type { InstanceRecord } from "@aenv/contract";
import picocolors from "picocolors";
import { describe, expect, it } from "vitest";
import { instanceFacts, trainerUrl, usageLines } from "./instance-view.ts";

const output = { colors: picocolors.createColors(false), isTty: false, columns: 120, write: () => {} };
const at = "2026-01-01T00:00:00.000Z";
const common = { id: "games-1", environment: "games@1.0.0", status: "Running", created_at: at, updated_at: at };
const link = (key: string) => `http://127.0.0.1:8081/agent/${key}/mcp`;
const withRoles: InstanceRecord = { ...common, agent_url: null, role_urls: { white: link("k.white.1"), black: link("k.black.2") } };

describe("the view of an instance with roles", () => {
  it("has the link of each role, and that of the trainer", () => {
    const text = instanceFacts(withRoles, output);
    expect(text).toMatch(/For white +http:\/\/127\.0\.0\.1:8081\/agent\/k\.white\.1\/mcp/);
    expect(text).toMatch(/For black +http:\/\/127\.0\.0\.1:8081\/agent\/k\.black\.2\/mcp/);
    expect(text).not.toContain("For agents");
    expect(trainerUrl(withRoles)).toBe("http://127.0.0.1:8081/env-instance/games-1");
  });

  it("configures an MCP client for each role", () => {
    const text = usageLines(withRoles, output).join("\n");
    expect(text).toContain('"games-white"');
    expect(text).toContain('"games-black"');
    expect(text).toContain("--url http://127.0.0.1:8081/agent/k.white.1");
  });

  it("is that of one agent without roles", () => {
    const text = usageLines({ ...common, agent_url: link("k") }, output).join("\n");
    expect(text).toContain('"games": {');
    expect(text).toContain("--url http://127.0.0.1:8081/env-instance/games-1");
  });
});
