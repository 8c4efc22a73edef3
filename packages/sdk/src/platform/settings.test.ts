import { describe, expect, it, vi } from "vitest";
import { readSettings } from "./settings.ts";

describe("readSettings", () => {
  it("reads the SDK's three variables", () => {
    const variables = { AENV_API_KEY: "k", AENV_SYSTEM_URL: "http://x", DUMMY_INSTANCE_IP: "localhost", OTHER: "y" };
    expect(readSettings(variables)).toEqual({ apiKey: "k", systemUrl: "http://x", dummyInstanceIp: "localhost" });
  });

  it("treats an empty variable as absent", () => {
    expect(readSettings({ AENV_API_KEY: "", DUMMY_INSTANCE_IP: "" })).toEqual({});
  });

  it("is empty without a process, as in a browser", () => {
    vi.stubGlobal("process", undefined);
    try {
      expect(readSettings()).toEqual({});
    } finally {
      vi.unstubAllGlobals();
    }
  });
});
