/**
 * Status bar item: use of the GPUs of this bench and the next action on them. It polls only while
 * this server holds GPUs and the page is visible. It is red if an answer is needed.
 */
import { TextItem } from '@jupyterlab/statusbar';
import { ReactWidget } from '@jupyterlab/ui-components';
import * as React from 'react';
import type { BenchModel } from './benchModel';
import { benchLine, isGoing, needsAnswer } from './benchWords';
import { chipText, chipTitle, ofServer } from './gpuWords';
import { useChanged, useNow } from './hooks';
import type { JobsModel } from './model';
import type { IGpuUse } from './tokens';

/** Poll interval, in milliseconds. The scheduler measures every ten seconds. */
export const ASK_MS = 5000;

const NONE: readonly IGpuUse[] = [];

export class GpuChip extends ReactWidget {
  /** `server`: name of this notebook server, empty for the default server. */
  constructor(
    private readonly _model: JobsModel,
    private readonly _bench: BenchModel,
    private readonly _server: string,
    private readonly _onOpen: () => void
  ) {
    super();
    this.addClass('jp-mod-highlighted');
    this.addClass('bp-GpuChip');
  }

  protected override render(): React.JSX.Element {
    const { _model: model, _bench: bench, _server: server, _onOpen: onOpen } = this;
    return <Chip model={model} bench={bench} server={server} onOpen={onOpen} />;
  }
}

interface IChipProps {
  model: JobsModel;
  bench: BenchModel;
  server: string;
  onOpen: () => void;
}

function Chip({ model, bench, server, onOpen }: IChipProps): React.JSX.Element | null {
  useChanged(model);
  useChanged(bench);
  const held = model.quota?.build.held.find(one => one.server === server)?.gpus.length ?? 0;
  const gpus = useGpus(model, server, held > 0);
  const now = useNow(ASK_MS);
  const line = benchLine(bench.now, now);
  const measured = held > 0 && gpus.length > 0 ? chipText(gpus, now, bench.now) : null;
  const gone = bench.now?.given_back?.done ?? false;
  const parts = gone ? [line] : [measured, measured === null && !isGoing(bench.now) ? null : line];
  const text = parts.filter(part => part !== null).join(' · ');
  if (text === '') {
    return null;
  }
  return (
    <TextItem
      source={text}
      title={`${gone ? '' : `${chipTitle(gpus)} `}Click for details and choices.`}
      className={needsAnswer(bench.now) ? 'bp-mod-due' : ''}
      role="button"
      tabIndex={0}
      data-testid="benchpool-gpus"
      onClick={onOpen}
      onKeyDown={event => {
        if (event.key === 'Enter' || event.key === ' ') {
          event.preventDefault();
          onOpen();
        }
      }}
    />
  );
}

function useGpus(model: JobsModel, server: string, isAsked: boolean): readonly IGpuUse[] {
  const [gpus, setGpus] = React.useState(NONE);
  React.useEffect(() => {
    let isOver = !isAsked;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const ask = async () => {
      if (!document.hidden) {
        try {
          const found = await model.api.gpuUse();
          setGpus(isOver ? NONE : ofServer(found, server));
        } catch {
          setGpus(NONE); // the job item beside it shows the cause
        }
      }
      if (!isOver) {
        timer = setTimeout(() => void ask(), ASK_MS);
      }
    };
    if (isAsked) {
      void ask();
    }
    return () => {
      isOver = true;
      clearTimeout(timer);
    };
  }, [model, server, isAsked]);
  return gpus;
}
