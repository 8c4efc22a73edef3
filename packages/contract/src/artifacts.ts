import * as z from "zod";

/** The function of an environment that returns the files of an episode, such as logs of its reward. The trainer's side calls it. */
export const ARTIFACTS_FUNCTION = "episode_artifacts";

/** What it returns: files by relative path. */
export const episodeArtifacts = z.object({
  files: z.record(z.string(), z.union([z.object({ text: z.string() }), z.object({ base64: z.base64() })])),
});
export type EpisodeArtifacts = z.infer<typeof episodeArtifacts>;
