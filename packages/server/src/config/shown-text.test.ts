import { describe, expect, it } from "vitest";
import { hideFolders } from "./shown-text.ts";

describe("hideFolders", () => {
  const shown = hideFolders({ "<home>": "/srv/aenv/", "<store>": "/srv/aenv/store", "<data>": "", "<root>": "/" });

  it("removes the server's folders from a text, inner ones first", () => {
    expect(shown("ENOSPC: no space left on device, open '/srv/aenv/blobs/tmp/x'")).toBe(
      "ENOSPC: no space left on device, open '<home>/blobs/tmp/x'",
    );
    expect(shown("/srv/aenv/store/server.db and /srv/aenv")).toBe("<store>/server.db and <home>");
  });

  it("keeps everything else", () => {
    expect(shown("POST /env is not part of this API")).toBe("POST /env is not part of this API");
  });
});
