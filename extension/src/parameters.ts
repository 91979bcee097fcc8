/**
 * Parameters of a notebook or of cells as typed: texts by name. Pure.
 *
 * The notebook server converts a text by the type of its parameter. A text with several values,
 * such as `1, 2, 4`, makes a sweep over the parameter. The server reports faults with the field
 * `parameters.NAME` or `sweep.NAME`, and the dialog shows them below the field of that name.
 */
import type { IOfferedParameter } from './tokens';

/** Typed texts by name. A parameter with an empty text keeps its default. */
export type Typed = Readonly<Record<string, string>>;

export interface IParameterField extends IOfferedParameter {
  /** Whether the code has the parameter. Otherwise it is a former parameter with a value. */
  offered: boolean;
}

/** Label of a type behind a field, or an empty string for an unknown type. */
export const TYPE_WORDS: Readonly<Record<string, string>> = {
  bool: 'true or false',
  int: 'whole number',
  float: 'number',
  str: 'text',
  list: 'list',
  dict: 'dictionary',
  any: ''
};

/** Return the parameters to send, without empty ones, which keep their default. */
export function given(typed: Typed): Record<string, string> {
  return Object.fromEntries(Object.entries(typed).filter(([, text]) => text !== ''));
}

/** Return the fields of the tagged cell, then former parameters with a value. */
export function mainFields(offered: readonly IOfferedParameter[], typed: Typed): IParameterField[] {
  const known = new Set(offered.map(({ name }) => name));
  const gone = Object.keys(given(typed)).filter(name => !known.has(name));
  return [
    ...offered.filter(({ tagged }) => tagged).map(one => ({ ...one, offered: true })),
    ...gone.map(name => ({ ...NO_PARAMETER, name, offered: false }))
  ];
}

/** Return the constants that can be changed, in the order of the cells, so that no field moves. */
export function constantFields(offered: readonly IOfferedParameter[]): IParameterField[] {
  return offered.filter(({ tagged }) => !tagged).map(one => ({ ...one, offered: true }));
}

const NO_PARAMETER = { type: 'any', default: '', help: '', cell: '', tagged: false };

/** Format the values of a job as typed texts. */
export function typedAgain(values: Readonly<Record<string, unknown>>): Typed {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, text(value)]));
}

function text(value: unknown): string {
  if (value === null) {
    return 'None';
  }
  if (typeof value === 'boolean') {
    return value ? 'True' : 'False';
  }
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** Return the valid part of remembered parameters. */
export function typedOf(known: unknown): Typed {
  const pairs = known !== null && typeof known === 'object' ? Object.entries(known) : [];
  return Object.fromEntries(
    pairs.filter((pair): pair is [string, string] => typeof pair[1] === 'string')
  );
}
