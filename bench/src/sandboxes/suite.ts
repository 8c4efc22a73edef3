import { missing, startDocker } from "@aenv/testing";
import type { Suite } from "../suite.ts";
import { measureEnvironments, measureShipped } from "./environments.ts";
import { measureForks } from "./forks.ts";
import { BenchImage } from "./image.ts";
import { measureCommands, measureMany } from "./live.ts";
import { FULL } from "./scale.ts";
import { measureStarts } from "./starts.ts";

/** Sandboxes of the oci engine, beside `docker run` and `runc exec`. */
export const sandboxes: Suite = {
  name: "sandboxes",
  needs: async () =>
    (["runc", "crun", "runsc", "docker", "network-namespaces", "go"] as const)
      .map((name) => missing(name))
      .find((reason) => reason !== null) ?? null,
  async run(report) {
    await using image = await BenchImage.build();
    await measureStarts(report, image, FULL);
    {
      await using docker = await startDocker();
      await measureEnvironments(report, docker.socket, FULL);
      await measureShipped(report, image, docker.socket, FULL);
    }
    await measureCommands(report, image, FULL);
    await measureForks(report, image, FULL);
    await measureMany(report, image, FULL);
  },
};
