import { valueError } from "@aenv/benchmark";
import { integer, text } from "../../core/tools/parameters.ts";
import { type Side, toolsOf } from "../../core/tools/tool.ts";
import type { ToolkitDefinition } from "../../core/tools/toolkit.ts";
import { calculate } from "../../python/calculate/calculate.ts";
import { str } from "../../python/repr.ts";
import { bookReservation } from "./book.ts";
import { getFlightStatus, listAllAirports, searchDirectFlight, searchOnestopFlight } from "./flight-tools.ts";
import { Certificate, type FlightDb } from "./model.ts";
import { userId } from "./parameters.ts";
import { editUser, getUser } from "./records.ts";
import {
  cancelReservation,
  getReservationDetails,
  updateReservationBaggages,
  updateReservationFlights,
  updateReservationPassengers,
} from "./reservation-tools.ts";

const { read, write, generic } = toolsOf<Side<FlightDb>>();

const NEW_CERTIFICATES = ["certificate_3221322", "certificate_3221323", "certificate_3221324"];

const getUserDetails = read({
  name: "get_user_details",
  summary: "Look up a user: profile, payment methods and reservations.",
  parameters: { user_id: userId },
  run: ({ user_id }, { db }) => getUser(db, user_id),
});

const sendCertificate = write({
  name: "send_certificate",
  summary: "Give a user a certificate to pay with. It cannot be taken back.",
  parameters: { user_id: userId, amount: integer("What it is worth, in dollars.") },
  run({ user_id, amount }, { db }) {
    const user = editUser(db, user_id);
    const id = NEW_CERTIFICATES.find((candidate) => !user.payment_methods.has(candidate));
    if (id === undefined) throw valueError("Too many certificates");
    user.payment_methods.set(id, Certificate.create({ source: "certificate", id, amount }));
    return `Certificate ${id} added to user ${str(user_id)} with amount ${str(amount)}.`;
  },
});

const calculateTool = generic({
  name: "calculate",
  summary: "Work out an arithmetic expression.",
  parameters: { expression: text("Numbers with + - * / and parentheses, for example '2 * (30 + 4)'.") },
  run: ({ expression }) => calculate(expression),
});

const transferToHumanAgents = generic({
  name: "transfer_to_human_agents",
  summary: "Hand the user over to a human agent.",
  details: "Only for users who ask for a human, or whose request neither policy nor tools can serve.",
  parameters: { summary: text("What the user wants, in brief.") },
  run: () => "Transfer successful",
});

export const airlineTools: ToolkitDefinition<FlightDb, null> = {
  className: "AirlineTools",
  tools: [
    bookReservation,
    calculateTool,
    cancelReservation,
    getReservationDetails,
    getUserDetails,
    listAllAirports,
    searchDirectFlight,
    searchOnestopFlight,
    sendCertificate,
    transferToHumanAgents,
    updateReservationBaggages,
    updateReservationFlights,
    updateReservationPassengers,
    getFlightStatus,
  ],
  helpers: [],
};
