import { environment } from "@aenv/contract";
import { describe, expect, it } from "vitest";
import { ada, metadata, openTestHub } from "../fixtures/hub.ts";
import { toFullRecord, toRecord } from "./record.ts";

describe("a version's record", () => {
  it("has the original's fields in the original's spelling", async () => {
    const { hub } = openTestHub();
    const upsert = {
      name: "weather-demo",
      version: "1.0.0",
      tags: ["linux"],
      status: "Ready",
      codeUrl: "oss://xxx",
      description: "weather",
      artifacts: [{ type: "image", content: "docker.io/aenv/weather-demo:1.0.0" }],
      buildConfig: { dockerfile: "./Dockerfile" },
      testConfig: { script: "" },
      deployConfig: { cpu: "1", memory: "2Gi", os: "linux" },
    };
    const record = toRecord((await hub.publish(upsert, ada)).environment);
    expect(record).toMatchObject({
      id: "weather-demo-1.0.0",
      name: "weather-demo",
      description: "weather",
      version: "1.0.0",
      tags: ["linux"],
      code_url: "oss://xxx",
      status: 6,
      artifacts: [{ id: "", type: "image", content: "docker.io/aenv/weather-demo:1.0.0" }],
      build_config: { dockerfile: "./Dockerfile" },
      test_config: { script: "" },
      deploy_config: { cpu: "1", memory: "2Gi", os: "linux" },
      created_at: "2026-01-12T03:25:46.000Z",
      updated_at: "2026-01-12T03:25:46.000Z",
      publisher: "ada",
      visibility: "private",
    });
    expect(environment.parse(JSON.parse(JSON.stringify(record)))).toEqual(record);
  });

  it("has text where the original's strict parser requires text, and null where it accepts null", async () => {
    const { hub } = openTestHub();
    const record = toRecord((await hub.publish({ name: "a", version: "1.0.0" }, ada)).environment);
    for (const field of ["id", "name", "description", "version", "code_url", "created_at", "updated_at"])
      expect(typeof record[field], field).toBe("string");
    expect(record).toMatchObject({
      description: "",
      code_url: "",
      status: 0,
      tags: [],
      artifacts: [],
      build_config: null,
      deploy_config: null,
    });
  });

  it("has metadata and history only in the full record", async () => {
    const { push } = openTestHub();
    const { environment } = await push(ada, "a", "1.0.0");
    expect(toRecord(environment)).not.toHaveProperty("metadata");
    expect(toFullRecord(environment)).toMatchObject({ metadata, history: [{ what: "published" }, { what: "verified" }] });
  });
});
