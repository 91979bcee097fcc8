/** The tested modules import no JupyterLab package, so no package is transformed. */
module.exports = {
  roots: ['<rootDir>/src'],
  testEnvironment: 'jsdom',
  setupFiles: ['<rootDir>/jest.setup.js'],
  testRegex: 'src/__tests__/.*\\.spec\\.tsx?$',
  transform: { '^.+\\.tsx?$': ['ts-jest', { tsconfig: 'tsconfig.test.json', diagnostics: false }] },
  moduleFileExtensions: ['ts', 'tsx', 'js', 'json']
};
