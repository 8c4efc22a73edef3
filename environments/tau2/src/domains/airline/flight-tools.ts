import { type Side, toolsOf } from "../../core/tools/tool.ts";
import { equals, isOrdered, lookup } from "../../python/equality.ts";
import { str } from "../../python/repr.ts";
import { assign } from "../../python/values/objects.ts";
import type { PyValue } from "../../python/values/values.ts";
import { airports } from "./airports.ts";
import { AirportCode, DirectFlight, type FlightDb } from "./model.ts";
import { date, destination, flightNumber, origin } from "./parameters.ts";
import { dayOf, getFlight } from "./records.ts";

const { read } = toolsOf<Side<FlightDb>>();

export const listAllAirports = read({
  name: "list_all_airports",
  summary: "List every airport with its city.",
  parameters: {},
  run: () => airports.map(([iata, city]) => AirportCode.create({ iata, city })),
});

export const searchDirectFlight = read({
  name: "search_direct_flight",
  summary: "Find the flights from one airport to another on a day.",
  parameters: { origin, destination, date },
  run: (wanted, { db }) => directFlights(db, wanted),
});

export const searchOnestopFlight = read({
  name: "search_onestop_flight",
  summary: "Find the ways from one airport to another with one change, on a day.",
  parameters: { origin, destination, date },
  run({ origin, destination, date }, { db }) {
    const connections: DirectFlight[][] = [];
    for (const first of directFlights(db, { origin, destination: null, date })) {
      assign(first, "date", date);
      const arrival = first.scheduled_arrival_time_est;
      const nextDate = arrival.includes("+1") ? dayAfter(str(date)) : date;
      // As in the reference, times are compared as strings with `+1`: a departure in the same minute of the next day is not found.
      for (const second of directFlights(db, { origin: first.destination, destination, date: nextDate }, arrival)) {
        assign(second, "date", nextDate);
        connections.push([first, second]);
      }
    }
    return connections;
  },
});

export const getFlightStatus = read({
  name: "get_flight_status",
  summary: "Tell how a flight stands on a day: available, on time, delayed, flying, landed or cancelled.",
  parameters: { flight_number: flightNumber, date },
  run: ({ flight_number, date }, { db }) => dayOf(getFlight(db, flight_number), flight_number, date).status,
});

interface Wanted {
  readonly origin: PyValue;
  readonly destination: PyValue;
  readonly date: PyValue;
}

/** None as an airport matches any. Flights without free seats are included. */
function directFlights(db: FlightDb, { origin, destination, date }: Wanted, leaveAfter: string | null = null): DirectFlight[] {
  const hits: DirectFlight[] = [];
  for (const flight of db.flights.values()) {
    if (origin !== null && !equals(flight.origin, origin)) continue;
    if (destination !== null && !equals(flight.destination, destination)) continue;
    const day = lookup(flight.dates, date);
    if (day?.status !== "available") continue;
    const { flight_number, scheduled_departure_time_est, scheduled_arrival_time_est } = flight;
    if (leaveAfter !== null && !isOrdered(scheduled_departure_time_est, ">=", leaveAfter)) continue;
    hits.push(
      DirectFlight.create({
        flight_number,
        origin: flight.origin,
        destination: flight.destination,
        status: "available",
        scheduled_departure_time_est,
        scheduled_arrival_time_est,
        available_seats: day.available_seats,
        prices: day.prices,
      }),
    );
  }
  return hits;
}

/** As in the reference, works for one month only and does not pad the day. */
function dayAfter(date: string): string {
  return `2024-05-${Number(date.slice(-2)) + 1}`;
}
