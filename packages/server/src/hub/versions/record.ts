import { type EnvironmentRecord, environmentStatuses } from "@aenv/contract";
import type { EnvironmentVersion } from "./environment-version.ts";

/** A version as it is sent: the original's fields in the original's spelling, then additional ones. */
export function toRecord(environment: EnvironmentVersion): EnvironmentRecord {
  const { name, version, config } = environment;
  return {
    id: `${name}-${version}`,
    name,
    description: environment.description,
    version,
    tags: [...environment.tags],
    code_url: config.codeUrl ?? "",
    status: environmentStatuses.indexOf(environment.status),
    artifacts: environment.artifacts.map(({ id, type, content }) => ({ id, type, content })),
    build_config: config.buildConfig ?? null,
    test_config: config.testConfig ?? null,
    deploy_config: config.deployConfig ?? null,
    created_at: environment.createdAt,
    updated_at: environment.updatedAt,
    publisher: environment.publisher,
    visibility: environment.visibility,
    dependencies: [...environment.dependencies],
    content_digest: environment.contentDigest,
    bundle_digest: environment.bundleDigest,
  };
}

/** The record with metadata and history, which are too large for lists. */
export function toFullRecord(environment: EnvironmentVersion): EnvironmentRecord {
  return { ...toRecord(environment), metadata: environment.metadata, history: environment.history };
}
