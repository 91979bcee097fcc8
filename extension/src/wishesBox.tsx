/**
 * Project membership in the panel: open requests with their decisions, and a button to request
 * access.
 */
import { InputDialog, showErrorMessage } from '@jupyterlab/apputils';
import * as React from 'react';
import type { AccessAction } from './api';
import { useChanged } from './hooks';
import type { JobsModel } from './model';
import { accessCommand, IAccess, Wishes, wishText } from './wishes';

interface IWishesProps {
  wishes: Wishes;
  model: JobsModel;
}

export function WishesBox({ wishes, model }: IWishesProps): React.JSX.Element {
  useChanged(wishes);
  return (
    <div className="bp-Wishes" data-testid="benchpool-wishes">
      {wishes.all.map(wish => {
        const whom = { project: wish.project, user: wish.user };
        return (
          <div key={`${wish.project}/${wish.user}`} className="bp-Note" role="status">
            {wishText(wish)}
            {wish.decides && (
              <span className="bp-Failure">
                <button
                  type="button"
                  className="bp-Link"
                  title={accessCommand('add_member', whom)}
                  onClick={() => void done(wishes, 'add_member', whom)}
                >
                  {`Let ${wish.user} in`}
                </button>
                <button
                  type="button"
                  className="bp-Link"
                  title={accessCommand('decline_access', { ...whom, reason: '…' })}
                  onClick={() => void decline(wishes, whom)}
                >
                  Decline…
                </button>
              </span>
            )}
          </div>
        );
      })}
      {model.loaded && (
        <button type="button" className="bp-Link" onClick={() => void ask(wishes, model)}>
          Ask for access to a project…
        </button>
      )}
    </div>
  );
}

/** Ask the user for a project and a reason. Both dialogs show the terminal command. */
async function ask(wishes: Wishes, model: JobsModel): Promise<void> {
  const mine = new Set(model.quota?.projects.map(each => each.name));
  const others = (model.status?.projects ?? []).map(each => each.name);
  const project = await InputDialog.getItem({
    title: 'Ask for access to a project',
    label: `In a terminal: ${accessCommand('ask_access', { project: '…', reason: '…' })}`,
    items: others.filter(name => !mine.has(name)),
    editable: true,
    okLabel: 'Next'
  });
  if (!project.value) {
    return;
  }
  const reason = await InputDialog.getText({
    title: `Ask for access to ${project.value}`,
    label: 'Why, for its leads and the administrators to read',
    okLabel: 'Ask'
  });
  if (reason.button.accept) {
    await done(wishes, 'ask_access', { project: project.value, reason: reason.value ?? '' });
  }
}

async function decline(wishes: Wishes, whom: IAccess): Promise<void> {
  const reason = await InputDialog.getText({
    title: `Decline ${whom.user}`,
    label: `Why, for ${whom.user} to read`,
    okLabel: 'Decline'
  });
  if (reason.button.accept) {
    const said = reason.value ? { reason: reason.value } : {};
    await done(wishes, 'decline_access', { ...whom, ...said });
  }
}

async function done(wishes: Wishes, action: AccessAction, given: IAccess): Promise<void> {
  try {
    await wishes.act(action, given);
  } catch (error) {
    await showErrorMessage('Access to projects', (error as Error).message);
  }
}

/** Button below an error that requests access to its project without leaving the dialog. */
export function AskForProject(props: { wishes: Wishes; project: string }): React.JSX.Element {
  const { wishes, project } = props;
  const [answer, setAnswer] = React.useState('');
  const press = async () => {
    try {
      await wishes.act('ask_access', { project });
      setAnswer(`You asked to belong to project ${project}: its leads or an administrator decide.`);
    } catch (error) {
      setAnswer((error as Error).message);
    }
  };
  return answer ? (
    <p className="bp-Note" role="status">
      {answer}
    </p>
  ) : (
    <button
      type="button"
      className="bp-Link"
      data-testid="benchpool-ask-access"
      title={accessCommand('ask_access', { project })}
      onClick={() => void press()}
    >
      {`Ask for access to ${project}`}
    </button>
  );
}
