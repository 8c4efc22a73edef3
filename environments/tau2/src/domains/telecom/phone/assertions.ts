import { valueError } from "@aenv/benchmark";
import { toolsOf } from "../../../core/tools/tool.ts";
import { equals, isOrdered } from "../../../python/equality.ts";
import { repr } from "../../../python/repr.ts";
import { float, type PyValue } from "../../../python/values/values.ts";
import { lowered } from "../lower.ts";
import { NetworkStatus, type PhoneSide, type TelecomUserDb } from "./model.ts";
import { canSendMms, deviceOf, doesDataWork, speedOf, surroundingsOf } from "./network.ts";

const { helper } = toolsOf<PhoneSide>();

/** They check the phone after its last network search. */
export const assertions = [
  expecting("assert_airplane_mode_status", (db) => deviceOf(db).airplane_mode),
  helper({
    name: "assert_service_status",
    parameters: ["expected_status"],
    run({ expected_status }, { db }) {
      const expected = Object.values(NetworkStatus).find((status) => equals(status, expected_status));
      if (expected === undefined) throw valueError(`${repr(expected_status)} is not a valid NetworkStatus`);
      return deviceOf(db).network_connection_status === expected;
    },
  }),
  expecting("assert_mobile_data_status", doesDataWork),
  expecting("assert_mobile_roaming_status", (db) => deviceOf(db).roaming_enabled),
  expecting("assert_mobile_data_saver_mode_status", (db) => deviceOf(db).data_saver_mode),
  helper({
    name: "assert_internet_speed",
    parameters: ["expected_speed"],
    optionals: { expected_desc: null },
    run({ expected_speed, expected_desc }, { db }) {
      const { mbps, words } = speedOf(db);
      if (!isOrdered(float(mbps ?? 0), ">=", expected_speed)) return false;
      return expected_desc === null || lowered(words) === lowered(expected_desc);
    },
  }),
  helper({
    name: "assert_internet_not_excellent",
    parameters: [],
    run: (_, { db }) => speedOf(db).words !== "Excellent",
  }),
  expecting("assert_can_send_mms", canSendMms),
  expecting("assert_mobile_data_usage_exceeded", (db) => surroundingsOf(db).mobile_data_usage_exceeded),
];

function expecting(name: string, actual: (db: TelecomUserDb) => PyValue) {
  return helper({ name, parameters: ["expected_status"], run: ({ expected_status }, { db }) => equals(actual(db), expected_status) });
}
