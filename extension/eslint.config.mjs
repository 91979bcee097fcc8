import jupyter from '@jupyter/eslint-plugin';
import prettier from 'eslint-config-prettier';
import hooks from 'eslint-plugin-react-hooks';
import tseslint from 'typescript-eslint';

export default tseslint.config(
  {
    ignores: [
      'node_modules',
      'lib',
      'coverage',
      'benchpool',
      'src/generated',
      'jest.*.js',
      'style/index.js'
    ]
  },
  {
    files: ['src/**/*.{ts,tsx}'],
    extends: [tseslint.configs.recommendedTypeChecked, tseslint.configs.stylisticTypeChecked],
    plugins: { 'react-hooks': hooks, jupyter },
    languageOptions: {
      parserOptions: { project: './tsconfig.test.json', tsconfigRootDir: import.meta.dirname }
    },
    rules: {
      ...jupyter.configs.recommended[0].rules,
      // The texts are English and shared with the terminal and the pages. They are not translated
      // yet.
      'jupyter/no-untranslated-string': 'off',
      'jupyter/prefer-lazy-imports': 'off',
      curly: 'error',
      eqeqeq: ['error', 'always'],
      'max-lines': ['error', 400],
      'no-eval': 'error',
      'no-implied-eval': 'error',
      'no-restricted-globals': [
        'error',
        { name: 'fetch', message: 'only connection.ts reaches the server' },
        { name: 'EventSource', message: 'only connection.ts reaches the server' }
      ],
      'no-restricted-syntax': [
        'error',
        {
          selector: "JSXAttribute[name.name='dangerouslySetInnerHTML']",
          message: 'text reaches the page through React only'
        },
        {
          selector: 'MemberExpression[property.name=/^(innerHTML|outerHTML|insertAdjacentHTML)$/]',
          message: 'text reaches the page through React only'
        }
      ],
      'react-hooks/rules-of-hooks': 'error',
      'react-hooks/exhaustive-deps': 'error',
      '@typescript-eslint/explicit-module-boundary-types': 'error',
      '@typescript-eslint/naming-convention': [
        'error',
        { selector: 'interface', format: ['PascalCase'], prefix: ['I'] }
      ]
    }
  },
  {
    files: ['src/__tests__/**'],
    rules: { '@typescript-eslint/unbound-method': 'off' }
  },
  prettier
);
