// Made from the table of operations by docs/generate.py: do not edit.

/** One input: its bounds are those of the service; null is none. */
export interface IActionField {
  readonly name: string;
  readonly title: string;
  readonly help: string;
  readonly kind: 'text' | 'whole' | 'number';
  readonly least: number | null;
  readonly most: number | null;
  readonly longest: number | null;
}

/**
 * An action whose fields are filled in before. `done` is what is said afterwards, with `{name}` and
 * other keys of the job; `ended`: it is there for jobs that have ended, too.
 */
export interface IFilledAction {
  readonly name: string;
  readonly label: string;
  readonly summary: string;
  readonly done: string;
  readonly ended: boolean;
  readonly fields: readonly IActionField[];
}

export type FilledAction = 'change' | 'rename';

export const FILLED_ACTIONS: readonly (IFilledAction & { readonly name: FilledAction })[] = [
  {
    "name": "change",
    "label": "Change",
    "summary": "Give an accepted job another priority, other workers, or both",
    "done": "{name} has priority {priority} and is to have {workers_text}.",
    "ended": false,
    "fields": [
      {
        "name": "priority",
        "title": "Priority",
        "help": "Its turn inside the project; higher first.",
        "kind": "whole",
        "least": 0,
        "most": 1000,
        "longest": null
      },
      {
        "name": "workers",
        "title": "Workers",
        "help": "Workers from now on.",
        "kind": "whole",
        "least": 1,
        "most": 4096,
        "longest": null
      }
    ]
  },
  {
    "name": "rename",
    "label": "Rename",
    "summary": "Give a job another name",
    "done": "Its name is {name} now.",
    "ended": true,
    "fields": [
      {
        "name": "name",
        "title": "Name",
        "help": "What lists, pages and messages call it.",
        "kind": "text",
        "least": null,
        "most": null,
        "longest": 100
      }
    ]
  }
];
