// Generated from the table of operations by docs/generate.py: do not edit.

/**
 * Input field with the bounds of the service; null is no bound. `names` are separated by commas,
 * and shown as `empty` if there are none. A `duration` is in seconds and written as `90m`. An
 * `erasable` field may be emptied.
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
 * Changeable option of a job: its noun in messages, the unit of its number, the number in a reason
 * with which the job would start now, and the button for it.
 */
export interface IChangeable {
  readonly name: string;
  readonly noun: string;
  readonly unit: string;
  readonly advised: string;
  readonly press: string;
}

/**
 * Action with fields to fill in. `done` is the message afterwards, with `{name}` and other keys of
 * the job. `ended`: it is also available for ended jobs.
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
        "help": "Priority among the jobs of its project, 0 to 1000. Higher ones start first and may pause lower ones that are preemptible; other projects are not affected. The owner, leads of the project and administrators may set it.",
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
        "help": "New number of workers.",
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
        "help": "Time limit of an attempt: 90m, 2h, 3d, or seconds.",
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
        "help": "Project whose quota it uses.",
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
        "help": "Accepted GPU models, best first, separated by commas; or any.",
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
    "done": "The new name is {name}.",
    "ended": true,
    "fields": [
      {
        "name": "name",
        "title": "Name",
        "help": "New name in lists, pages and messages.",
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

/** Actions on a job: the command in a terminal, and the options of the fields. */
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

/** Actions on access requests: the path, and the command in a terminal. */
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
