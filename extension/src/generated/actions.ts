// Made from the table of operations by docs/generate.py: do not edit.

/**
 * One input: its bounds are those of the service; null is none. `names` are written with commas
 * between them, and as `empty` where there are none; a `duration` is seconds, written as `90m`;
 * what is `erasable` may be emptied.
 */
export interface IActionField {
  readonly name: string;
  readonly title: string;
  readonly help: string;
  readonly kind: 'text' | 'whole' | 'number' | 'names' | 'duration';
  readonly least: number | null;
  readonly most: number | null;
  readonly longest: number | null;
  readonly empty: string;
  readonly erasable: boolean;
}

/**
 * What may change later of a job: what sentences call it, what its number counts, the number of a
 * reason that has a value with which the job would start now, and the button for that.
 */
export interface IChangeable {
  readonly name: string;
  readonly noun: string;
  readonly unit: string;
  readonly advised: string;
  readonly press: string;
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

export type FilledAction = 'change' | 'rename' | 'note';

export const FILLED_ACTIONS: readonly (IFilledAction & { readonly name: FilledAction })[] = [
  {
    "name": "change",
    "label": "Change",
    "summary": "Change the priority, size, time limit, project or GPU models of an accepted job",
    "done": "{name} has {changeable}.",
    "ended": false,
    "fields": [
      {
        "name": "priority",
        "title": "Priority",
        "help": "Its turn among the jobs of its project, 0 to 1000: a higher one starts first, and may pause lower ones that can be paused; other projects are not touched. Its owner, leads of the project and administrators may set it.",
        "kind": "whole",
        "least": 0,
        "most": 1000,
        "longest": null,
        "empty": "",
        "erasable": false
      },
      {
        "name": "workers",
        "title": "Workers",
        "help": "Workers from now on.",
        "kind": "whole",
        "least": 1,
        "most": 4096,
        "longest": null,
        "empty": "",
        "erasable": false
      },
      {
        "name": "gpus",
        "title": "GPUs",
        "help": "GPUs of each worker.",
        "kind": "whole",
        "least": 1,
        "most": 1024,
        "longest": null,
        "empty": "",
        "erasable": false
      },
      {
        "name": "time_limit_s",
        "title": "Time limit",
        "help": "It is ended after so long: 90m, 2h, 3d, or seconds.",
        "kind": "duration",
        "least": 1,
        "most": 31622400,
        "longest": null,
        "empty": "",
        "erasable": false
      },
      {
        "name": "project",
        "title": "Project",
        "help": "Whose quota it runs on.",
        "kind": "text",
        "least": null,
        "most": null,
        "longest": 100,
        "empty": "",
        "erasable": false
      },
      {
        "name": "gpu_models",
        "title": "GPU models",
        "help": "GPU models it accepts, best first, with commas between them; or any.",
        "kind": "names",
        "least": null,
        "most": null,
        "longest": null,
        "empty": "any",
        "erasable": false
      }
    ]
  },
  {
    "name": "rename",
    "label": "Rename",
    "summary": "Rename a job",
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
        "longest": 100,
        "empty": "",
        "erasable": false
      }
    ]
  },
  {
    "name": "note",
    "label": "Note",
    "summary": "Write a note on a job",
    "done": "The note on {name} is changed.",
    "ended": true,
    "fields": [
      {
        "name": "note",
        "title": "Note",
        "help": "Shown with the job and where jobs are compared.",
        "kind": "text",
        "least": null,
        "most": null,
        "longest": 500,
        "empty": "",
        "erasable": true
      }
    ]
  }
];

export const CHANGEABLE: readonly IChangeable[] = [
  {
    "name": "priority",
    "noun": "priority",
    "unit": "",
    "advised": "",
    "press": ""
  },
  {
    "name": "workers",
    "noun": "workers",
    "unit": "worker",
    "advised": "",
    "press": ""
  },
  {
    "name": "gpus",
    "noun": "GPUs",
    "unit": "GPU",
    "advised": "would_start_with",
    "press": "Start with {value}"
  },
  {
    "name": "time_limit_s",
    "noun": "time limit",
    "unit": "",
    "advised": "would_start_limited_to",
    "press": "End it after {value}"
  },
  {
    "name": "project",
    "noun": "project",
    "unit": "",
    "advised": "",
    "press": ""
  },
  {
    "name": "gpu_models",
    "noun": "GPU models",
    "unit": "",
    "advised": "would_start_on",
    "press": "Accept {value}"
  }
];

/** What may be done to a job: its verb in a terminal, and the options of its fields. */
export const JOB_VERBS = {
  "pause": {
    "words": "pause",
    "positional": [],
    "options": {
      "reason": "--reason"
    }
  },
  "resume": {
    "words": "resume",
    "positional": [],
    "options": {
      "reason": "--reason"
    }
  },
  "cancel": {
    "words": "cancel",
    "positional": [],
    "options": {
      "reason": "--reason"
    }
  },
  "change": {
    "words": "change",
    "positional": [],
    "options": {
      "priority": "--priority",
      "workers": "--workers",
      "gpus": "--gpus",
      "time_limit_s": "--time-limit",
      "project": "--project",
      "gpu_models": "--gpu-model"
    }
  },
  "rename": {
    "words": "rename",
    "positional": [
      "name"
    ],
    "options": {
      "name": "--name"
    }
  },
  "note": {
    "words": "note",
    "positional": [
      "note"
    ],
    "options": {
      "note": "--note"
    }
  },
  "again": {
    "words": "again",
    "positional": [],
    "options": {
      "key": "--key"
    }
  }
} as const;

/** What may be done about belonging to a project: where, and its verb in a terminal. */
export const ACCESS = {
  "ask_access": {
    "path": "/access/ask",
    "words": "access ask",
    "positional": [
      "project"
    ]
  },
  "add_member": {
    "path": "/access/add",
    "words": "access add",
    "positional": [
      "project",
      "user"
    ]
  },
  "remove_member": {
    "path": "/access/remove",
    "words": "access remove",
    "positional": [
      "project",
      "user"
    ]
  },
  "decline_access": {
    "path": "/access/decline",
    "words": "access decline",
    "positional": [
      "project",
      "user"
    ]
  }
} as const;
