import parser from '@typescript-eslint/parser';
import measured from './tools/eslint/measured.mjs';

const hooks = ['useQuery', 'useQueries', 'useInfiniteQuery'];

export default [
  {
    files: [
      'src/screens/**/*.{ts,tsx}',
      'src/drawer/**/*.{ts,tsx}',
      'src/shell/**/*.{ts,tsx}',
      'src/components/**/*.{ts,tsx}',
    ],
    linterOptions: { reportUnusedDisableDirectives: 'error' },
    languageOptions: { parser, parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    plugins: { measured },
    rules: {
      'measured/no-made-up-value': 'error',
      'measured/no-bare-emptiness': 'error',
      'no-restricted-imports': [
        'error',
        {
          paths: [
            {
              name: '@tanstack/react-query',
              importNames: [...hooks, 'UseQueryResult'],
              message: 'Use the hooks of state/query: their results know which service answers.',
            },
          ],
        },
      ],
    },
  },
  {
    // The tick of a component is drawn there.
    files: ['src/screens/**/*.{ts,tsx}', 'src/drawer/**/*.{ts,tsx}', 'src/shell/**/*.{ts,tsx}'],
    languageOptions: { parser },
    plugins: { measured },
    rules: { 'measured/no-bare-tick': 'error' },
  },
];
